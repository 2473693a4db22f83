import { Button } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import type { Result } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { State } from '../../components/state.tsx'
import { ExactTime } from '../../components/time.tsx'

type Deliverability = Result<'GET /v1/domains/:id/deliverability'>
type Check = Deliverability['checks'][number]
type Bounces = Deliverability['bounces']

const names: Readonly<Record<Check['check'], string>> = {
  spf: 'SPF',
  dkim: 'DKIM',
  return_path: 'Return path',
  dmarc: 'DMARC',
  reverse_dns: 'Reverse DNS of the sending host',
  mta_sts: 'MTA-STS',
  tls_rpt: 'TLS reports',
}

/** How receivers see the mail of a domain: what they look up, and what they bounced. */
export function DomainDeliverability() {
  const { id = '' } = useParams({ strict: false })
  const domain = useGet('GET /v1/domains/:id', { params: { id } })
  const query = useGet('GET /v1/domains/:id/deliverability', { params: { id } })
  const name = domain.data?.name
  return (
    <Screen
      title={name === undefined ? 'Deliverability' : `Deliverability of ${name}`}
      parent={{ label: name ?? 'Domain', path: `/domains/${id}` }}
      subtitle={
        query.data && (
          <span className="dimmed">
            Looked up <ExactTime at={query.data.checkedAt} />
          </span>
        )
      }
      action={
        <Button loading={query.isFetching} onClick={() => void query.refetch()}>
          Check now
        </Button>
      }
    >
      <Loaded query={query} what="domain">
        {({ checks, bounces }) => (
          <>
            <Section title="What receivers look up">
              <Checks checks={checks} />
            </Section>
            <Section title="Bounces by mailbox provider">
              <BounceTable bounces={bounces} />
            </Section>
          </>
        )}
      </Loaded>
    </Screen>
  )
}

function Checks({ checks }: { checks: readonly Check[] }) {
  const [first] = checks
  if (first && checks.every(({ status }) => status === 'skipped')) {
    return <Empty title="Nothing to look up">{first.summary}</Empty>
  }
  return checks.map((check) => <CheckResult key={check.check} check={check} />)
}

function CheckResult({ check: { check, status, summary, advice, found } }: { check: Check }) {
  return (
    <article className="record">
      <div className="section-head">
        <h3>{names[check]}</h3>
        <State of={status} />
      </div>
      <p>{summary}</p>
      {advice !== null && <p className="hint">{advice}</p>}
      {found.map((value) => (
        <p key={value} className="mono dimmed">
          {value}
        </p>
      ))}
    </article>
  )
}

type Row = Bounces['byProvider'][number]

const columns: Column<Row>[] = [
  {
    header: 'Recipients at',
    cell: ({ kind, name }) => (kind === 'provider' ? name : <span className="mono">{name}</span>),
    phoneLine: reasonOf,
  },
  { header: 'Bounced', width: '110px', align: 'right', cell: ({ bounced }) => bounced.toLocaleString() },
  { header: 'Latest reason', width: '50%', isMinor: true, cell: reasonOf },
]

function reasonOf({ reason }: Row) {
  return <span className="second-line wraps">{reason ?? 'No reason was given'}</span>
}

function BounceTable({ bounces: { since, byProvider } }: { bounces: Bounces }) {
  const { mode } = useScope()
  if (mode === 'test') {
    return <Empty title="No bounces in test mode">Switch to live mode to see what bounced of this domain.</Empty>
  }
  if (byProvider.length === 0) {
    return <Empty title="Nothing bounced">Of the emails from this domain that are kept, none bounced.</Empty>
  }
  return (
    <>
      <p className="dimmed">
        Of the newest 500 bounced emails from this domain
        {since !== null && (
          <>
            , sent since <ExactTime at={since} />
          </>
        )}
        .
      </p>
      <PlainTable label="Bounces by mailbox provider" rows={byProvider} columns={columns} keyOf={({ name }) => name} />
    </>
  )
}
