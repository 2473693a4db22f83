import '../../styles/conditions.css'
import '../../styles/forms.css'
import { Alert, Box, Button, Flex, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { ApiError } from '../../api/client.ts'
import { useChange, useChoices, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { DownloadButton } from '../../components/download-button.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Section } from '../../components/facts.tsx'
import { Loading } from '../../components/loaded.tsx'
import { unread } from '../../components/unread.tsx'
import { capitalized } from '../../components/use-api-form.ts'
import { ConditionGroup } from './condition-group.tsx'
import { type Faults, faultsAt, type Group, groupOf, type Places, replaced, written } from './condition-tree.ts'
import type { Segment } from './segment.ts'
import { SegmentPreview, usePreview } from './segment-preview.tsx'

type Props = {
  /** Empty: none is chosen yet. */
  audienceId: string
  /** The initial name and conditions. */
  initial: Pick<Segment, 'name' | 'conditions'>
  /** The segment that is changed. Default: a new one is made. */
  id?: string
}

/** The name and the conditions of a segment, with the people whom they choose. */
export function SegmentEditor(props: Props) {
  const { can } = useScope()
  const query = useGet('GET /v1/contact-properties', {}, { enabled: can('contacts:read') })
  if (query.error !== null) return <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />
  if (query.data === undefined) return <Loading />
  return <Editor {...props} types={new Map(query.data.data.map(({ key, type }) => [key, type]))} />
}

function Editor({ audienceId, initial, id, types }: Props & { types: Parameters<typeof written>[1] }) {
  const { accountId, mode, can, path } = useScope()
  const navigate = useNavigate()
  const client = useQueryClient()
  const isEditable = can('segments:write')
  const campaigns = useGet('GET /v1/campaigns', { query: { limit: 100 } }, { enabled: can('campaigns:read') })
  const topics = useChoices('GET /v1/topics', { query: {} }, { enabled: can('topics:read') })
  const fault = unread(campaigns, 'The campaigns') ?? unread(topics, 'The topics')
  const [name, setName] = useState(initial.name)
  const [root, setRoot] = useState<Group>(() => groupOf(initial.conditions))
  const [isAsked, setAsked] = useState(false)
  const create = useChange('POST /v1/segments')
  const update = useChange('PATCH /v1/segments/:id')
  const { conditions, places, missing } = written(root, types)
  const json = JSON.stringify(conditions)
  const isComplete = missing.size === 0
  const preview = usePreview(audienceId, isComplete ? json : null)
  const [saved, setSaved] = useState({ name: initial.name, json: id === undefined ? '' : json })
  const isStored = saved.json === json
  const isChanged = saved.name !== name || !isStored
  const saving = id === undefined ? create : update
  // Those of the last answer, as long as nothing was changed behind it.
  const refused = refusalsOf(saving.error ?? (preview.isSettled ? preview.error : null), places)

  function save(): void {
    setAsked(true)
    if (!isComplete || audienceId === '' || name.trim() === '') return
    const onSuccess = (segment: Segment) => {
      setSaved({ name, json })
      // The people are others now: a request of before that is still under way must not be taken for them.
      const people = [accountId, mode, 'GET /v1/segments/:id/contacts', { params: { id } }]
      if (!isStored) client.removeQueries({ queryKey: people })
      notifications.show({ message: `${segment.name} was saved.` })
      if (id === undefined) void navigate({ to: path(`/segments/${segment.id}`) })
    }
    if (id === undefined) create.mutate({ body: { audienceId, name, conditions } }, { onSuccess })
    else update.mutate({ params: { id }, body: { name, conditions } }, { onSuccess })
  }

  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        save()
      }}
    >
      <TextInput
        label="Name"
        maw={420}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        disabled={!isEditable}
        error={isAsked && name.trim() === '' ? 'Enter a name.' : refused.name}
      />
      <Section title="Conditions">
        {fault !== null && <Box mb="sm">{fault}</Box>}
        <fieldset className="plain" disabled={!isEditable}>
          <ConditionGroup
            group={root}
            types={types}
            campaigns={campaigns.data?.data ?? []}
            topics={topics.data}
            faults={refused.faults}
            missing={isAsked ? missing : new Map()}
            isEditable={isEditable}
            depth={0}
            onReplace={(key, by) => {
              saving.reset()
              setRoot((latest) => replaced(latest, key, by))
            }}
          />
        </fieldset>
      </Section>
      {isEditable && (
        <div className="form-end">
          {isAsked && audienceId === '' && (
            <Alert color="red" variant="outline" role="alert">
              Choose the audience that the people are chosen from.
            </Alert>
          )}
          {saving.error !== null && !refused.isComplete && <ErrorNotice error={saving.error} />}
          <div>
            <Button type="submit" loading={saving.isPending} disabled={!isChanged}>
              {id === undefined ? 'Create segment' : 'Save'}
            </Button>
          </div>
        </div>
      )}
      <Section
        title={mode === 'live' ? 'Who that is now' : 'Who that is now, in both modes'}
        action={id !== undefined && can('contacts:read') && <ExportPeople id={id} isStored={isStored} />}
      >
        {audienceId === '' ? (
          <p className="dimmed">Choose an audience, and its people are counted.</p>
        ) : (
          <SegmentPreview
            preview={preview}
            isComplete={isComplete}
            isFaultShown={refused.faults.size > 0}
            storedId={isStored ? id : undefined}
          />
        )}
      </Section>
    </form>
  )
}

function ExportPeople({ id, isStored }: { id: string; isStored: boolean }) {
  const path = `/v1/segments/${id}/contacts/export`
  return (
    <Flex gap="xs" align="center" wrap="wrap">
      {!isStored && (
        <Text fz="sm" c="dimmed">
          Save the segment to export it.
        </Text>
      )}
      <DownloadButton label="Export" path={path} fileName={`segment-${id}.csv`} isDisabled={!isStored} />
    </Flex>
  )
}

type Refusals = {
  faults: Faults
  name: string | undefined
  /** Whether all that is wrong is told at a field. */
  isComplete: boolean
}

function refusalsOf(error: ApiError | null, places: Places): Refusals {
  const details = error?.details.map(({ path, message }) => ({ path, message: capitalized(message) })) ?? []
  const name = details.find(({ path }) => path === 'body.name')?.message
  const { faults, others } = faultsAt(
    places,
    details.filter(({ path }) => path !== 'body.name'),
  )
  return { faults, name, isComplete: details.length > 0 && others.length === 0 }
}
