import { useQuery } from '@tanstack/react-query'
import { useRouter } from '@tanstack/react-router'
import { useEffect } from 'react'
import { sessionQuery } from '../api/query-client.ts'
import type { Session } from '../api/scope.tsx'

/** Returns the session, or leads to the form to sign in once it has ended. Undefined: not read yet. */
export function useSession(): Session | undefined {
  const { data: session, error } = useQuery(sessionQuery)
  const router = useRouter()
  useEffect(() => {
    if (error === null) return
    void router.navigate({ to: '/sign-in', search: { next: router.state.location.href } })
  }, [error, router])
  return session
}
