import { Anchor } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { ApiError } from '../api/client.ts'

type Query = Pick<UseQueryResult<unknown, ApiError>, 'data' | 'error'> & { refetch: () => unknown }

/**
 * Returns a line that says that something small could not be read, with a button to try again: for the error of an
 * input whose choices are missing, and in place of a link. Null: it was read, or is being read.
 *
 * @param what As people call it, such as "The audiences".
 */
export function unread({ data, error, refetch }: Query, what: string): ReactNode {
  if (data !== undefined || error === null) return null
  return (
    <span role="alert" className="unread">
      {what} could not be read.{' '}
      <Anchor component="button" type="button" inherit c="inherit" underline="always" onClick={() => void refetch()}>
        Try again
      </Anchor>
    </span>
  )
}
