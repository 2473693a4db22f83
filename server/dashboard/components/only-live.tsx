import { Button } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useScope } from '../api/scope.tsx'
import { Empty } from './empty.tsx'

type Props = {
  title: string
  /** Of the screen, below the account and the mode. */
  path: string
  /** Why test mode has nothing there. */
  children: ReactNode
}

/** Shown in test mode in place of a list that only live mode has, with the way there. */
export function OnlyLive({ title, path, children }: Props) {
  const { account } = useScope()
  const navigate = useNavigate()
  return (
    <Empty
      title={title}
      action={<Button onClick={() => void navigate({ to: `/${account.id}/live${path}` })}>Switch to live mode</Button>}
    >
      {children}
    </Empty>
  )
}
