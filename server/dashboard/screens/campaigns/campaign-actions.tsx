import { Button, Group, Menu } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconSend } from '@tabler/icons-react'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { DeleteByName } from '../../components/delete-by-name.tsx'
import { MoreMenu } from '../../components/row-menu.tsx'
import { type CampaignDetails, type CampaignStatus, faultyContent } from './campaign.ts'
import { SendCampaign } from './send-campaign.tsx'
import { TestCampaign } from './test-campaign.tsx'

type Act = 'send' | 'test' | 'duplicate' | 'pause' | 'resume' | 'cancel' | 'delete'

/** The actions in each state: the first is the button, the others are in the menu. */
const acts: Readonly<Record<CampaignStatus, readonly Act[]>> = {
  draft: ['send', 'test', 'duplicate', 'delete'],
  scheduled: ['test', 'duplicate', 'cancel'],
  sending: ['pause', 'duplicate', 'cancel'],
  paused: ['resume', 'duplicate', 'cancel'],
  completed: ['duplicate', 'delete'],
  canceled: ['duplicate', 'delete'],
}

const words: Readonly<Record<Act, string>> = {
  send: 'Send it',
  test: 'Send a test',
  duplicate: 'Duplicate',
  pause: 'Pause',
  resume: 'Resume',
  cancel: 'Cancel the campaign',
  delete: 'Delete',
}

/** Those of them that change content; the others need the permission to send. */
const writing: ReadonlySet<Act> = new Set<Act>(['duplicate', 'delete'])
/** Those that destroy something. */
const red: ReadonlySet<Act> = new Set<Act>(['cancel', 'delete'])

/** Returns what can be done with a campaign, the most useful first. */
function actsOf(campaign: CampaignDetails): readonly Act[] {
  // Its content cannot be changed any more: resuming it alone would fail again.
  return faultyContent(campaign) === 'campaign' ? ['duplicate', 'resume', 'cancel'] : acts[campaign.status]
}

/** The actions that are possible in the state of a campaign. */
export function CampaignActions({ campaign }: { campaign: CampaignDetails }) {
  const { can, path } = useScope()
  const navigate = useNavigate()
  const [asked, setAsked] = useState<Act | null>(null)
  const { id, status } = campaign
  const close = () => setAsked(null)
  const wanted = actsOf(campaign)
  const possible = wanted.filter((act) => can(writing.has(act) ? 'campaigns:write' : 'campaigns:send'))
  const [first, ...others] = possible
  if (first === undefined) return null
  const isPrimary = first === wanted[0] && (status === 'draft' || status === 'paused')
  return (
    <Group gap="xs">
      {others.length > 0 && (
        <MoreMenu>
          {others.map((act) => (
            <Menu.Item key={act} {...(red.has(act) && { color: 'red' })} onClick={() => setAsked(act)}>
              {words[act]}
            </Menu.Item>
          ))}
        </MoreMenu>
      )}
      {status === 'draft' && can('campaigns:write') && (
        <Button variant="default" onClick={() => void navigate({ to: path(`/campaigns/${id}/edit`) })}>
          Edit
        </Button>
      )}
      <Button
        variant={isPrimary ? 'filled' : 'default'}
        {...(first === 'send' && { leftSection: <IconSend size={16} aria-hidden /> })}
        onClick={() => setAsked(first)}
      >
        {words[first]}
      </Button>
      {asked === 'send' && <SendCampaign campaign={campaign} onClose={close} />}
      {asked === 'test' && <TestCampaign campaign={campaign} onClose={close} />}
      {asked === 'duplicate' && <Duplicate campaign={campaign} onClose={close} />}
      {asked === 'pause' && <Pause campaign={campaign} onClose={close} />}
      {asked === 'resume' && <Resume campaign={campaign} onClose={close} />}
      {asked === 'cancel' && <Cancel campaign={campaign} onClose={close} />}
      {asked === 'delete' && <Delete campaign={campaign} onClose={close} />}
    </Group>
  )
}

type Props = { campaign: CampaignDetails; onClose: () => void }

function Duplicate({ campaign: { id, name }, onClose }: Props) {
  const { path } = useScope()
  const navigate = useNavigate()
  const duplicate = useChange('POST /v1/campaigns/:id/duplicate')
  const onSuccess = ({ id: copy }: CampaignDetails) => {
    notifications.show({ message: 'The draft was made. This is it.' })
    onClose()
    void navigate({ to: path(`/campaigns/${copy}`) })
  }
  return (
    <Confirm
      title={`Duplicate ${name}?`}
      action="Make a draft of it"
      isHarmless
      isRunning={duplicate.isPending}
      error={duplicate.error}
      onClose={onClose}
      onConfirm={() => duplicate.mutate({ params: { id }, body: {} }, { onSuccess })}
    >
      A draft with the same audience, sender and content is made. Nothing is sent.
    </Confirm>
  )
}

function Pause({ campaign: { id, name }, onClose }: Props) {
  const pause = useChange('POST /v1/campaigns/:id/pause')
  return (
    <Confirm
      title={`Pause ${name}?`}
      action="Pause it"
      isHarmless
      isRunning={pause.isPending}
      error={pause.error}
      onClose={onClose}
      onConfirm={() => pause.mutate({ params: { id }, body: {} }, { onSuccess: onClose })}
    >
      Nothing more leaves but what is on its way to a mail server. Resume it later: nobody is left out or written to
      twice.
    </Confirm>
  )
}

function Resume({ campaign, onClose }: Props) {
  const { id, name, statusReason } = campaign
  const isPausedAgain = statusReason !== null && faultyContent(campaign) !== 'variant'
  const resume = useChange('POST /v1/campaigns/:id/resume')
  return (
    <Confirm
      title={`Resume ${name}?`}
      action="Resume it"
      isHarmless
      isRunning={resume.isPending}
      error={resume.error}
      onClose={onClose}
      onConfirm={() => resume.mutate({ params: { id }, body: {} }, { onSuccess: onClose })}
    >
      It goes on with those who are left.{' '}
      {isPausedAgain && 'Where what paused it is not put right, it is paused again.'}
    </Confirm>
  )
}

function Cancel({ campaign: { id, name }, onClose }: Props) {
  const cancel = useChange('POST /v1/campaigns/:id/cancel')
  return (
    <Confirm
      title={`Cancel ${name}?`}
      action="Cancel the campaign"
      typed={name}
      isRunning={cancel.isPending}
      error={cancel.error}
      onClose={onClose}
      onConfirm={() => cancel.mutate({ params: { id }, body: {} }, { onSuccess: onClose })}
    >
      It ends for good: those who are left get nothing. Emails that were sent stay. To send it after all, duplicate it.
    </Confirm>
  )
}

function Delete({ campaign: { id, name, status }, onClose }: Props) {
  return (
    <DeleteByName
      operation="DELETE /v1/campaigns/:id"
      input={{ params: { id } }}
      what="campaign"
      name={name}
      leadsTo="/campaigns"
      onClose={onClose}
    >
      {status === 'draft'
        ? 'What was written is gone for good.'
        : 'The list of its recipients is gone for good. Its emails stay, with their statistics.'}
    </DeleteByName>
  )
}
