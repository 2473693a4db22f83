import { Button, type ButtonProps } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useScope } from '../api/scope.tsx'

type Props = ButtonProps & {
  /** A screen of this account and mode. */
  to: string
  /** The filters that are set there. Default: none. */
  search?: Readonly<Record<string, string>>
  children: ReactNode
}

/** A link to another screen that looks like a button: for what begins there. */
export function LinkButton({ to, search = {}, ...rest }: Props) {
  const { path } = useScope()
  return <Button {...rest} renderRoot={(props) => <Link {...props} to={path(to)} search={search} />} />
}
