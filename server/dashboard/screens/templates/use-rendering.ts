import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { ApiError } from '../../api/client.ts'
import { useScope } from '../../api/scope.tsx'
import { readValues } from '../../components/json-values.ts'
import type { Template, TemplatePreview } from './template.ts'

export type Rendering = Pick<UseQueryResult<TemplatePreview, ApiError>, 'data' | 'error' | 'isFetching'> & {
  /** The values of the variables, as JSON. */
  values: string
  setValues: (values: string) => void
  /** Whether `values` is an object. */
  isReadable: boolean
  retry: () => void
}

/** Renders the draft each time it was saved. What was rendered before stays until then. */
export function useRendering({ id, updatedAt }: Template): Rendering {
  const { accountId, mode, call } = useScope()
  const [values, setValues] = useState('')
  const variables = readValues(values)
  const query = useQuery<TemplatePreview, ApiError>({
    queryKey: [accountId, mode, 'POST /v1/templates/:id/render', id, updatedAt, variables],
    queryFn: () => call('POST /v1/templates/:id/render', { params: { id }, body: { ...(variables && { variables }) } }),
    enabled: variables !== null,
    placeholderData: (before, of) => (of?.queryKey[3] === id ? before : undefined),
  })
  const { data, error, isFetching, refetch } = query
  return { data, error, isFetching, values, setValues, isReadable: variables !== null, retry: () => void refetch() }
}
