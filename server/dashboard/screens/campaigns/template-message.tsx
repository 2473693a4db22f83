import { useQuery } from '@tanstack/react-query'
import type { ApiError, Result } from '../../api/client.ts'
import { useScope } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Loading } from '../../components/loaded.tsx'
import { Rendered } from '../templates/preview-pane.tsx'

type Props = {
  templateId: string
  /** The name of the campaign. */
  name: string
  /** Values for the variables, the same for all people. */
  variables: Readonly<Record<string, unknown>>
  /** The subject in place of that of the template. Default and null: that of the template. */
  subject?: string | null
}

/** The published version of a template, as a made-up person gets it. */
export function TemplateMessage({ templateId, name, variables, subject = null }: Props) {
  const { accountId, account, mode, call, can } = useScope()
  const values = {
    ...variables,
    contact: { email: 'ada@example.com', firstName: 'Ada', lastName: 'Lovelace' },
    campaign: { name },
    account: { name: account.name },
  }
  const operation = 'POST /v1/templates/:id/render'
  const { data, error, refetch } = useQuery<Result<typeof operation>, ApiError>({
    queryKey: [accountId, mode, operation, templateId, 'published', values],
    queryFn: () => call(operation, { params: { id: templateId }, body: { version: 'published', variables: values } }),
    enabled: can('templates:read'),
    placeholderData: (before, of) => (of?.queryKey[3] === templateId ? before : undefined),
  })
  if (!can('templates:read')) return <p className="dimmed">Your role does not see templates.</p>
  if (error !== null) return <ErrorNotice error={error} onRetry={() => void refetch()} />
  return data === undefined ? <Loading /> : <Rendered preview={subject === null ? data : { ...data, subject }} />
}
