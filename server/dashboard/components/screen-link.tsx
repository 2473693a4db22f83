import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useScope } from '../api/scope.tsx'

/** A link to another screen of this account and mode. */
export function ScreenLink({ to, children, title }: { to: string; children: ReactNode; title?: string }) {
  const { path } = useScope()
  return (
    <Link to={path(to)} {...(title !== undefined && { title })}>
      {children}
    </Link>
  )
}
