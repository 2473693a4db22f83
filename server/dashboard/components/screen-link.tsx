import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useScope } from '../api/scope.tsx'

type Props = {
  to: string
  children: ReactNode
  title?: string
  /** The filters that are set there. Default: none. */
  search?: Readonly<Record<string, string>>
}

/** A link to another screen of this account and mode. */
export function ScreenLink({ to, children, title, search = {} }: Props) {
  const { path } = useScope()
  return (
    <Link to={path(to)} search={search} {...(title !== undefined && { title })}>
      {children}
    </Link>
  )
}
