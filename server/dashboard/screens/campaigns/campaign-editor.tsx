import { Button, Group, Stack } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useBlocker, useNavigate, useParams } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { useChange, useFirstReading, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Empty } from '../../components/empty.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { readValues } from '../../components/json-values.ts'
import { LeaveUnsaved } from '../../components/leave-unsaved.tsx'
import { Loaded, Loading } from '../../components/loaded.tsx'
import { RoleRefusal } from '../../components/role-refusal.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { MessageViews } from '../emails/message-views.tsx'
import { faultsOfAbTest } from './ab-test-values.ts'
import type { CampaignDetails } from './campaign.ts'
import { CampaignFields } from './campaign-fields.tsx'
import { CampaignPreview } from './campaign-preview.tsx'
import { bodyOf, type CampaignValues, changeOf, emptyValues, fieldOf, valuesOf } from './campaign-values.ts'
import { useSegmentsOf } from './segments-field.tsx'
import { TemplateMessage } from './template-message.tsx'
import { useCampaignRendering } from './use-campaign-rendering.ts'

const list = { label: 'Campaigns', path: '/campaigns' }

/** Writes a new campaign. */
export function CreateCampaign() {
  const { can } = useScope()
  const create = useChange('POST /v1/campaigns')
  if (!can('campaigns:write')) return <RoleRefusal title="Campaigns" permission="campaigns:write" />
  return (
    <Editor
      title="Create a campaign"
      parent={list}
      initial={emptyValues}
      action="Create draft"
      save={async (values) => (await create.mutateAsync({ body: bodyOf(values) })).id}
    />
  )
}

/** Changes a draft. */
export function EditCampaign() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet('GET /v1/campaigns/:id', { params: { id } })
  const { data: campaign } = query
  const parent = { label: 'Campaign', path: `/campaigns/${id}` }
  if (campaign !== undefined) return <EditDraft key={id} campaign={campaign} parent={parent} />
  return (
    <Screen title="Edit the campaign" parent={parent}>
      <Loaded query={query} what="campaign">
        {() => null}
      </Loaded>
    </Screen>
  )
}

type Parent = { label: string; path: string }

function EditDraft({ campaign, parent }: { campaign: CampaignDetails; parent: Parent }) {
  const { id, status } = campaign
  const { can } = useScope()
  const update = useChange('PATCH /v1/campaigns/:id')
  const [initial] = useState(() => valuesOf(campaign))
  const isReading = useFirstReading([useSegmentsOf(initial.audienceId)])
  if (status !== 'draft' || !can('campaigns:write')) {
    return (
      <Screen title="Edit the campaign" parent={parent}>
        <Empty title="It cannot be changed">
          {status === 'draft'
            ? 'Your role may look at it only.'
            : 'Only a draft can be changed, and this one was sent.'}{' '}
          <ScreenLink to={`/campaigns/${id}`}>Go to the campaign</ScreenLink>
        </Empty>
      </Screen>
    )
  }
  if (isReading) {
    return (
      <Screen title="Edit the campaign" parent={parent}>
        <Loading />
      </Screen>
    )
  }
  return (
    <Editor
      title="Edit the campaign"
      parent={parent}
      id={id}
      initial={initial}
      action="Save"
      save={async (values) => {
        await update.mutateAsync({ params: { id }, body: changeOf(values, initial) })
        notifications.show({ message: `${values.name} was saved.` })
        return id
      }}
    />
  )
}

type EditorProps = {
  /** The draft. Undefined: there is none yet. */
  id?: string
  title: string
  parent: Parent
  initial: CampaignValues
  action: string
  /** Returns the id of the campaign. */
  save: (values: CampaignValues) => Promise<string>
}

function Editor({ id, title, parent, initial, action, save }: EditorProps) {
  const { path } = useScope()
  const navigate = useNavigate()
  const isSaved = useRef(false)
  const { form, error, isRunning, submit } = useApiForm<CampaignValues>({
    initial,
    fieldOf,
    groups: ['abTest'],
    check: ({ audienceId, source, templateId, variables, throttle, abTest }) => ({
      audienceId: audienceId === '' ? 'Choose an audience' : null,
      templateId: source === 'template' && templateId === '' ? 'Choose a template' : null,
      variables: readValues(variables) === null ? 'Must be an object in JSON' : null,
      throttle: /^\s*\d*\s*$/.test(throttle) ? null : 'Must be a number of messages',
      ...faultsOfAbTest(abTest),
    }),
    send: async (values) => {
      const id = await save(values)
      isSaved.current = true
      await navigate({ to: path(`/campaigns/${id}`) })
    },
  })
  const rendering = useCampaignRendering(id, form.values)
  const blocker = useBlocker({
    shouldBlockFn: () => form.isDirty() && !isSaved.current,
    enableBeforeUnload: () => form.isDirty() && !isSaved.current,
    withResolver: true,
  })
  return (
    <Screen title={title} parent={parent}>
      {blocker.status === 'blocked' && (
        <LeaveUnsaved what="The changes of the campaign" onLeave={blocker.proceed} onStay={blocker.reset} />
      )}
      <div className="editor">
        <form onSubmit={submit}>
          <Stack>
            {error !== null && <ErrorNotice error={error} />}
            <CampaignFields form={form} faults={rendering.preview?.errors ?? []} />
            <Group className="form-foot">
              <Button type="submit" loading={isRunning}>
                {action}
              </Button>
            </Group>
          </Stack>
        </form>
        <section className="aside" aria-label="Preview">
          {id === undefined ? <PreviewOfNew values={form.values} /> : <CampaignPreview rendering={rendering} />}
        </section>
      </div>
    </Screen>
  )
}

/** A campaign that is not stored yet: what there is to see without the service. */
function PreviewOfNew({ values }: { values: CampaignValues }) {
  const { source, templateId, name, subject, format, html, text, variables } = values
  if (source === 'template') {
    if (templateId === '') return <p className="dimmed">Choose a template to see it here.</p>
    return <TemplateMessage templateId={templateId} name={name} variables={readValues(variables) ?? {}} />
  }
  if (format === 'mjml') return <p className="dimmed">Create the draft to see what the MJML becomes.</p>
  return (
    <MessageViews subject={subject} html={html === '' ? null : html} text={text === '' ? null : text}>
      Create the draft to see it with the values of a person.
    </MessageViews>
  )
}
