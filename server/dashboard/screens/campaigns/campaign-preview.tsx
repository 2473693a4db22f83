import { useScope } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Loading } from '../../components/loaded.tsx'
import { Rendered } from '../templates/preview-pane.tsx'
import { PersonField } from './person-field.tsx'
import type { CampaignRendering } from './use-campaign-rendering.ts'

/** The preview of a draft for one person, or the errors that prevent it. */
export function CampaignPreview({ rendering }: { rendering: CampaignRendering }) {
  const { preview, error, retry, person, showFor } = rendering
  const { can } = useScope()
  return (
    <>
      {error !== null && <ErrorNotice error={error} onRetry={retry} />}
      {error === null && preview === undefined && <Loading />}
      {error === null && preview !== undefined && <Rendered preview={preview} />}
      {can('contacts:read') && can('subscribers:read') && <PersonField person={person} onChoose={showFor} />}
    </>
  )
}
