import { Button, NativeSelect, Text } from '@mantine/core'
import { useState } from 'react'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { Section } from '../../components/facts.tsx'
import { ExactTime } from '../../components/time.tsx'
import { countOf } from '../overview/format.ts'
import { type CampaignDetails, type CampaignFigures, rateOf } from './campaign.ts'
import { numbers } from './campaign-breakdown.tsx'

type AbTest = NonNullable<CampaignDetails['abTest']>
type Row = CampaignFigures['variants'][number] & { subject: string; isWinner: boolean }

const columns: readonly Column<Row>[] = [
  {
    header: 'Variant',
    cell: ({ name, isWinner }) => (isWinner ? <strong>{name}, the winner</strong> : name),
    phoneLine: ({ opened, clicked, sent }) => `${rateOf(opened, sent)} opened, ${rateOf(clicked, sent)} clicked`,
  },
  { header: 'Subject', isMinor: true, cell: ({ subject }) => <span title={subject}>{subject}</span> },
  numbers('People', ({ people }) => countOf(people)),
  numbers('Sent', ({ sent }) => countOf(sent)),
  numbers('Opened', ({ opened, sent }) => `${countOf(opened)}, ${rateOf(opened, sent)}`, { isMinor: true }),
  numbers('Clicked', ({ clicked, sent }) => `${countOf(clicked)}, ${rateOf(clicked, sent)}`, { isMinor: true }),
  numbers('Unsubscribed', ({ unsubscribed }) => countOf(unsubscribed), { isMinor: true }),
]

/** How the variants of a campaign do, and which one the rest gets. */
export function AbTestResults({ campaign, figures }: { campaign: CampaignDetails; figures: CampaignFigures }) {
  const { can } = useScope()
  const [isAsked, setAsked] = useState(false)
  const { abTest, status } = campaign
  if (abTest === null) return null
  const isOpen = abTest.share < 100 && abTest.winner === null && (status === 'sending' || status === 'paused')
  const rows = figures.variants.map((variant, number) => ({
    ...variant,
    subject: abTest.variants[number]?.subject ?? campaign.subject,
    isWinner: variant.name === abTest.winner,
  }))
  return (
    <Section
      title="A/B test"
      action={
        isOpen &&
        can('campaigns:send') && (
          <Button variant="default" onClick={() => setAsked(true)}>
            Choose the winner
          </Button>
        )
      }
    >
      <Text mb="xs">
        <Decision campaign={campaign} abTest={abTest} />
      </Text>
      <PlainTable label="Variants" rows={rows} columns={columns} keyOf={({ name }) => name} />
      {isAsked && <ChooseWinner campaign={campaign} abTest={abTest} onClose={() => setAsked(false)} />}
    </Section>
  )
}

function Decision({ campaign, abTest }: { campaign: CampaignDetails; abTest: AbTest }) {
  const { share, winnerBy, hours, winner, decidedAt } = abTest
  const { waitingFor, endedAt } = campaign
  if (winner !== null && decidedAt !== null) {
    return (
      <>
        {winner} was chosen at <ExactTime at={decidedAt} />. It goes to the rest. The figures are those of the test.
      </>
    )
  }
  if (share === 100) return <>Everybody is in the test: there is no rest that a winner goes to.</>
  if (endedAt !== null) return <>No winner was chosen.</>
  if (winnerBy === 'manual') return <>{share} % of the people get the variants. The rest waits until you choose.</>
  const until = waitingFor?.reason === 'ab_test' ? waitingFor.until : null
  return (
    <>
      {share} % of the people get the variants. The one with the most {winnerBy} is chosen{' '}
      {until === null ? `${hours} h after the last of them` : <ExactTime at={until} />}, and goes to the rest.
    </>
  )
}

type ChooseProps = { campaign: CampaignDetails; abTest: AbTest; onClose: () => void }

function ChooseWinner({ campaign: { id, subject }, abTest: { variants }, onClose }: ChooseProps) {
  const choose = useChange('POST /v1/campaigns/:id/winner')
  const [variant, setVariant] = useState(variants[0]?.name ?? '')
  return (
    <Confirm
      title="Choose the winner?"
      action={`Send ${variant} to the rest`}
      isRunning={choose.isPending}
      error={choose.error}
      onClose={onClose}
      onConfirm={() => choose.mutate({ params: { id }, body: { variant } }, { onSuccess: onClose })}
    >
      <NativeSelect
        label="Winner"
        mb="md"
        data={variants.map((one) => ({ value: one.name, label: `${one.name}: ${one.subject ?? subject}` }))}
        value={variant}
        onChange={(event) => setVariant(event.currentTarget.value)}
      />
      Everybody who is not in the test gets it. It cannot be changed afterwards.
    </Confirm>
  )
}
