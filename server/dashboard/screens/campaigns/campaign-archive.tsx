import { Group, Switch } from '@mantine/core'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import type { CampaignDetails } from './campaign.ts'

/** Says whether everybody may read a campaign on the web, with the link to it. Who may write changes that. */
export function CampaignArchive({ campaign: { id, archive, archiveUrl } }: { campaign: CampaignDetails }) {
  const { can } = useScope()
  const update = useChange('PATCH /v1/campaigns/:id')
  const isPublic = archive === 'public'
  return (
    <Group gap="sm">
      {can('campaigns:write') ? (
        <Switch
          label="A page for everybody"
          checked={isPublic}
          disabled={update.isPending}
          onChange={() => update.mutate({ params: { id }, body: { archive: isPublic ? 'none' : 'public' } })}
        />
      ) : (
        <span>{isPublic ? 'A page for everybody' : 'For its recipients alone'}</span>
      )}
      {archiveUrl !== null && <Copyable label="Copy the link to the page" value={archiveUrl} />}
      {update.error !== null && <ErrorNotice error={update.error} />}
    </Group>
  )
}
