import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { useState } from 'react'
import { queryClient } from '../api/query-client.ts'
import { PortalScopeProvider } from '../api/scope.tsx'
import { PortalEnded } from './frame.tsx'
import type { OpenedPortal } from './open.ts'
import { createPortalRouter } from './router.tsx'

/** The portal of one customer, until its session ends. */
export function PortalApp({ access, token }: OpenedPortal) {
  const [router] = useState(() => createPortalRouter(`/portal/${access.id}`))
  const [isEnded, setEnded] = useState(false)
  const [end] = useState(() => () => setEnded(true))
  if (isEnded) return <PortalEnded />
  return (
    <QueryClientProvider client={queryClient}>
      <PortalScopeProvider portal={access} token={token} onEnded={end}>
        <RouterProvider router={router} />
      </PortalScopeProvider>
    </QueryClientProvider>
  )
}
