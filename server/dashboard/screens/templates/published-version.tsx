import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
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
  /** The version that was published when the dialog was opened. The API renders no earlier one. */
  version: number
  onClose: () => void
}

type Published = { version: number | null; preview: TemplatePreview }

/** Shows what emails get now, with fallbacks and samples for the variables. */
export function PublishedVersion({ id, version, onClose }: Props) {
  const { accountId, mode, call, onRefused } = useScope()
  const { data, error, refetch } = useQuery<Published, ApiError>({
    queryKey: [accountId, mode, 'POST /v1/templates/:id/render', id, 'published', version],
    queryFn: async () => {
      let known: number | null = version
      for (;;) {
        const preview = await call('POST /v1/templates/:id/render', { params: { id }, body: { version: 'published' } })
        // The preview has no version number, and another version can be published between the two requests.
        const { publishedVersion } = await call('GET /v1/templates/:id', { params: { id } })
        if (publishedVersion === known) return { version: known, preview }
        known = publishedVersion
      }
    },
  })
  useEffect(() => {
    if (error !== null) onRefused(error)
  }, [error, onRefused])
  return (
    <Dialog size="xl" title={`Version ${data?.version ?? version} (published)`} onClose={onClose}>
      {error !== null && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {error === null && (data === undefined ? <Loading /> : <Rendered preview={data.preview} isPublished />)}
    </Dialog>
  )
}
