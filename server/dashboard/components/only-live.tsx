import { Button } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
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

/** Shown in test mode in place of a list that only live mode has, with the way there. The filters stay set. */
export function OnlyLive({ title, path, children }: Props) {
  const { account } = useScope()
  const navigate = useNavigate()
  const search: Record<string, unknown> = useSearch({ strict: false })
  const toLive = () => void navigate({ to: `/${account.id}/live${path}`, search })
  return (
    <Empty title={title} action={<Button onClick={toLive}>Switch to live mode</Button>}>
      {children}
    </Empty>
  )
}
