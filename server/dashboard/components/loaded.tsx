import { Skeleton, Stack } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { ApiError } from '../api/client.ts'
import { useScope } from '../api/scope.tsx'
import { Empty } from './empty.tsx'
import { ErrorNotice } from './error-notice.tsx'

type Props<T> = {
  query: UseQueryResult<T, ApiError>
  /** The name of the object, for people: "email". */
  what: string
  children: (data: T) => ReactNode
}

const lines = ['40%', '100%', '100%', '70%', '100%', '55%']

/** Shows one object once it is read, and what to do where there is none. */
export function Loaded<T>({ query, what, children }: Props<T>) {
  const { data, error, refetch } = query
  const { portal, accountId } = useScope()
  if (data !== undefined) return children(data)
  if (error?.status === 404 || error?.status === 400) {
    return (
      <Empty title={`There is no such ${what}`}>
        {portal === null && accountId !== 'operator'
          ? 'It was deleted, or belongs to another account or the other mode. Look at the switch for live and test.'
          : 'It was deleted, or the address is mistyped.'}
      </Empty>
    )
  }
  if (error !== null) return <ErrorNotice error={error} onRetry={() => void refetch()} />
  return <Loading />
}

/** Stands in place of what is not read yet. */
export function Loading() {
  return (
    <Stack aria-busy="true" aria-label="Loading">
      {lines.map((width, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines never move
        <Skeleton key={index} height={16} width={width} />
      ))}
    </Stack>
  )
}
