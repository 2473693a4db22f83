import { Alert, NativeSelect } from '@mantine/core'
import { IconAlertTriangle } from '@tabler/icons-react'
import { useParams } from '@tanstack/react-router'
import { Fragment, useState } from 'react'
import { useFirstReading, useGet, useReadAgain } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { DownloadButton } from '../../components/download-button.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded, Loading } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { ExactTime, Time } from '../../components/time.tsx'
import { MessageViews } from '../emails/message-views.tsx'
import { countOf } from '../overview/format.ts'
import { type CampaignDetails, faultyContent, isMoving } from './campaign.ts'
import { CampaignActions } from './campaign-actions.tsx'
import { CampaignArchive } from './campaign-archive.tsx'
import { useComparison } from './campaign-comparison.tsx'
import { CampaignFigures, useFigures } from './campaign-figures.tsx'
import { CampaignRecipients } from './campaign-recipients.tsx'
import { hoursOf } from './send-window-values.ts'
import { TemplateMessage } from './template-message.tsx'

/** Milliseconds between two looks at a campaign that is on its way. */
const pollMs = 3_000
/** The same for one that only people move. */
const restingMs = 15_000
/** Operations whose results change with the state of a campaign. A result from before its end is not final. */
const ofState = ['GET /v1/campaigns/:id/statistics', 'GET /v1/campaigns/:id/recipients'] as const

/** One campaign: how far it is, what became of it, and what can be done with it. */
export function CampaignDetail() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet(
    'GET /v1/campaigns/:id',
    { params: { id } },
    {
      pollMs: (campaign) => {
        if (campaign === undefined || campaign.endedAt !== null) return false
        return isMoving(campaign, Date.now()) ? pollMs : restingMs
      },
    },
  )
  const { data: campaign } = query
  return (
    <Screen
      title={campaign?.name ?? 'Campaign'}
      parent={{ label: 'Campaigns', path: '/campaigns' }}
      subtitle={campaign && <State of={campaign.status} />}
      action={campaign && <CampaignActions campaign={campaign} />}
    >
      <Loaded query={query} what="campaign">
        {(read) => <Details campaign={read} />}
      </Loaded>
    </Screen>
  )
}

function Details({ campaign }: { campaign: CampaignDetails }) {
  const { can } = useScope()
  const { startedAt, status } = campaign
  const figures = useFigures(campaign)
  const comparison = useComparison(campaign)
  const isReading = useFirstReading([figures, ...comparison.queries])
  useReadAgain(status, ofState)
  if (isReading) return <Loading />
  return (
    <>
      <Notice campaign={campaign} />
      {startedAt !== null && <CampaignFigures campaign={campaign} query={figures} comparison={comparison} />}
      <Section title="About">
        <About campaign={campaign} />
      </Section>
      {startedAt !== null && (
        <Section title="Recipients" action={can('contacts:read') && <ExportRecipients campaign={campaign} />}>
          <CampaignRecipients campaign={campaign} />
        </Section>
      )}
      <Section title="Content">
        <Message campaign={campaign} />
      </Section>
    </>
  )
}

function ExportRecipients({ campaign: { id } }: { campaign: CampaignDetails }) {
  return (
    <DownloadButton label="Export" path={`/v1/campaigns/${id}/recipients/export`} fileName={`recipients-${id}.csv`} />
  )
}

/** The message of the campaign, or of one of its variants. */
function Message({ campaign }: { campaign: CampaignDetails }) {
  const [shown, setShown] = useState('')
  const { abTest } = campaign
  const variant = abTest?.variants.find(({ name }) => name === shown)
  return (
    <>
      {abTest !== null && (
        <NativeSelect
          label="Show"
          mb="md"
          data={[{ value: '', label: 'The message of the campaign' }, ...abTest.variants.map(({ name }) => name)]}
          value={shown}
          onChange={(event) => setShown(event.currentTarget.value)}
        />
      )}
      <MessageOf campaign={campaign} variant={variant} />
    </>
  )
}

type Variant = NonNullable<CampaignDetails['abTest']>['variants'][number]

function MessageOf({ campaign, variant }: { campaign: CampaignDetails; variant: Variant | undefined }) {
  const { status, name, subject, templateId, content, variables } = campaign
  const written = variant?.content ?? content
  const template = variant?.templateId ?? (variant?.content == null ? templateId : null)
  // Sending copies the template into the campaign: from then on the message is the campaign's own.
  if (status === 'draft' && template !== null) {
    const ownSubject = variant?.subject ?? (variant?.templateId == null ? null : subject)
    return <TemplateMessage templateId={template} name={name} variables={variables} subject={ownSubject} />
  }
  return (
    <MessageViews subject={variant?.subject ?? subject} html={written.html} text={written.text}>
      Liquid is filled in for each person.
    </MessageViews>
  )
}

/** A note on the state of a campaign, and on what to do first. */
function Notice({ campaign }: { campaign: CampaignDetails }) {
  const { can } = useScope()
  const { status, statusReason, scheduledAt, waitingFor } = campaign
  if (statusReason !== null) {
    return (
      <Alert
        color="gray"
        variant="outline"
        mb="lg"
        role="note"
        className="notice"
        icon={<IconAlertTriangle size={18} color="var(--warn)" aria-hidden />}
        title={titleOfReason[status]}
      >
        <p className="reason">{statusReason}</p>
        <NextStep campaign={campaign} />
      </Alert>
    )
  }
  if (status === 'scheduled' && scheduledAt !== null) {
    return (
      <Alert
        color="gray"
        mb="lg"
        role="note"
        title={
          <>
            It starts <Time at={scheduledAt} isAhead />
          </>
        }
      >
        It goes to those who are in the audience and active then: at <ExactTime at={scheduledAt} />.
      </Alert>
    )
  }
  if (waitingFor !== null && waitingFor.until === null) {
    return (
      <Alert color="gray" mb="lg" role="note" title="It waits for you to choose the winner">
        The test was sent. The rest gets the variant that you choose below.
      </Alert>
    )
  }
  if (waitingFor !== null && waitingFor.until !== null) {
    return (
      <Alert
        color="gray"
        mb="lg"
        role="note"
        title={
          <>
            It goes on <Time at={waitingFor.until} isAhead />
          </>
        }
      >
        {waits[waitingFor.reason]}
      </Alert>
    )
  }
  if (status === 'draft' && can('campaigns:send')) {
    return (
      <Alert color="gray" mb="lg" role="note" title="Nothing was sent yet">
        Send yourself a test, look at it in your mail program, then send it.
      </Alert>
    )
  }
  return null
}

/** Explanations of why a campaign waits, for waits that end by themselves. */
const waits: Readonly<Record<NonNullable<CampaignDetails['waitingFor']>['reason'], string>> = {
  send_window: 'It is outside of the hours in which it sends. What is queued waits with it.',
  local_time: 'For everybody who is left, the local time is still to come.',
  ab_test: 'The test was sent. The winner is chosen then, and goes to the rest.',
}

/** The title above the reason that the service gives, by the state of the campaign. */
const titleOfReason: Readonly<Record<CampaignDetails['status'], string>> = {
  draft: 'It was not sent',
  scheduled: 'It does not go on at present',
  sending: 'It does not go on at present',
  paused: 'The service has paused it',
  completed: 'Nobody got it',
  canceled: 'The service has canceled it',
}

function NextStep({ campaign }: { campaign: CampaignDetails }) {
  if (campaign.status === 'scheduled' || campaign.status === 'sending') return <>The service tries again by itself.</>
  if (campaign.status !== 'paused') return <>Duplicate it, change what kept it from being sent, and send the copy.</>
  const faulty = faultyContent(campaign)
  if (faulty === 'variant') {
    return (
      <>
        What a variant says cannot be changed any more. Resume the campaign, and it goes on with the others: people
        whose variant fails get nothing. Or cancel it, duplicate it, mend the variant, and send the copy.
      </>
    )
  }
  if (faulty === 'campaign') {
    return <>What it says cannot be changed any more: cancel it, duplicate it, mend the content, and send the copy.</>
  }
  return (
    <>
      Put that right, then resume it: nobody is left out. Domains and their records stand under{' '}
      <ScreenLink to="/domains">Domains</ScreenLink>.
    </>
  )
}

function About({ campaign }: { campaign: CampaignDetails }) {
  const { from, replyTo, tags, throttle, trackOpens, trackClicks, scheduledAt, startedAt, endedAt } = campaign
  const { segmentIds, templateId, templateVersion, abTest, sendWindow, localTime, fallbackTimezone } = campaign
  const metadata = Object.entries(campaign.metadata)
  const tracked = [trackOpens && 'Opens', trackClicks && 'Clicks'].filter((one) => one !== false)
  return (
    <Facts
      of={[
        ['Audience', <AudienceName key="audience" id={campaign.audienceId} />],
        ...(segmentIds.length > 0 ? ([['Segments', <SegmentNames key="segments" ids={segmentIds} />]] as const) : []),
        ['From', from],
        ...(replyTo.length > 0 ? ([['Reply to', replyTo.join(', ')]] as const) : []),
        ['Subject', campaign.subject],
        ...(campaign.content.preheader === null ? [] : ([['Preheader', campaign.content.preheader]] as const)),
        ...(templateId === null
          ? []
          : ([['Template', <TemplateName key="template" id={templateId} version={templateVersion} />]] as const)),
        ...(abTest === null ? [] : ([['A/B test', testOf(abTest)]] as const)),
        ['On the web', <CampaignArchive key="archive" campaign={campaign} />],
        ['Tracked', tracked.length === 0 ? 'Nothing' : tracked.join(', ')],
        ['Speed', throttle === null ? 'As fast as they leave' : `At most ${countOf(throttle)} an hour`],
        ...(sendWindow === null ? [] : ([['Hours', hoursOf(sendWindow)]] as const)),
        ...(localTime === null
          ? []
          : ([['Local time', `${localTime.replace('T', ' ')}, for others as in ${fallbackTimezone}`]] as const)),
        ...(tags.length > 0 ? ([['Tags', tags.join(', ')]] as const) : []),
        ...(metadata.length > 0
          ? ([['Metadata', metadata.map(([name, value]) => `${name}: ${value}`).join(', ')]] as const)
          : []),
        ...(scheduledAt === null ? [] : ([['Scheduled', <ExactTime key="at" at={scheduledAt} />]] as const)),
        ...(startedAt === null ? [] : ([['Started', <ExactTime key="at" at={startedAt} />]] as const)),
        ...(endedAt === null ? [] : ([['Ended', <ExactTime key="at" at={endedAt} />]] as const)),
        ['Created', <ExactTime key="at" at={campaign.createdAt} />],
        ['ID', <Copyable key="id" label="Copy the ID" value={campaign.id} />],
      ]}
    />
  )
}

/** Returns what a campaign tests, as text. */
function testOf({ share, winnerBy, hours, variants }: NonNullable<CampaignDetails['abTest']>): string {
  const test = `${variants.length} variants, to ${share} % of the people`
  if (share === 100) return test
  return `${test}; the winner ${hours === null ? 'is chosen by hand' : `by ${winnerBy} after ${countOf(hours)} h`}`
}

function AudienceName({ id }: { id: string }) {
  const { can } = useScope()
  const { data, error } = useGet('GET /v1/audiences/:id', { params: { id } }, { enabled: can('audiences:read') })
  if (error?.status === 404) return <span className="dimmed">It was deleted</span>
  return <ScreenLink to={`/audiences/${id}`}>{data?.name ?? id}</ScreenLink>
}

function SegmentNames({ ids }: { ids: readonly string[] }) {
  return ids.map((id, index) => (
    <Fragment key={id}>
      {index > 0 && ', '}
      <SegmentName id={id} />
    </Fragment>
  ))
}

function SegmentName({ id }: { id: string }) {
  const { can } = useScope()
  const { data, error } = useGet('GET /v1/segments/:id', { params: { id } }, { enabled: can('segments:read') })
  if (error?.status === 404) return <span className="dimmed">one that was deleted</span>
  return <ScreenLink to={`/segments/${id}`}>{data?.name ?? id}</ScreenLink>
}

function TemplateName({ id, version }: { id: string; version: number | null }) {
  const { can } = useScope()
  const { data, error } = useGet('GET /v1/templates/:id', { params: { id } }, { enabled: can('templates:read') })
  if (error?.status === 404) return <span className="dimmed">It was deleted</span>
  return (
    <>
      <ScreenLink to={`/templates/${id}`}>{data?.name ?? id}</ScreenLink>
      {version === null ? ', the version that is published when it is sent' : `, version ${version}`}
    </>
  )
}
