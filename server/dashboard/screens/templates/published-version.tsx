import { useQuery } from '@tanstack/react-query'
import type { ApiError } from '../../api/client.ts'
import { useScope } from '../../api/scope.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Loading } from '../../components/loaded.tsx'
import { Rendered } from './preview-pane.tsx'
import type { TemplatePreview } from './template.ts'

type Props = {
  /** The template. */
  id: string
  /** The version that is published. The API renders no earlier one. */
  version: number
  onClose: () => void
}

/** Shows what emails get now, with fallbacks and samples for the variables. */
export function PublishedVersion({ id, version, onClose }: Props) {
  const { accountId, mode, call } = useScope()
  const { data, error, refetch } = useQuery<TemplatePreview, ApiError>({
    queryKey: [accountId, mode, 'POST /v1/templates/:id/render', id, 'published', version],
    queryFn: () => call('POST /v1/templates/:id/render', { params: { id }, body: { version: 'published' } }),
  })
  return (
    <Dialog size="xl" title={`Version ${version}, which emails get`} onClose={onClose}>
      {error !== null && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {error === null && (data === undefined ? <Loading /> : <Rendered preview={data} />)}
    </Dialog>
  )
}
