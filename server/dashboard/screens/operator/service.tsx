import type { ReactNode } from 'react'
import type { Result } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { type Column, PlainTable } from '../../components/data-table.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { Time } from '../../components/time.tsx'
import { countOf } from '../overview/format.ts'
import { durationOf } from './format.ts'

type Instance = Result<'GET /v1/operator/instance'>
type Process = Instance['processes'][number]
type Destination = Instance['destinations'][number]

const pollMs = 10_000

/** How the service is doing: queues, processes, URLs that are late, versions. */
export function Service() {
  const instance = useGet('GET /v1/operator/instance', {}, { pollMs: () => pollMs })
  return (
    <Screen title="Service" subtitle="Queues, processes and versions, read again every 10 seconds.">
      <Loaded query={instance} what="service">
        {(data) => <Details instance={data} />}
      </Loaded>
    </Screen>
  )
}

function Details({ instance }: { instance: Instance }) {
  const { versions, processes, queues, undeliveredSeconds, destinations } = instance
  return (
    <>
      <Section title="Queues">
        <div className="wrapped">
          <PlainTable label="Queues" rows={queueRows(queues)} columns={queueColumns} keyOf={({ name }) => name} />
        </div>
        <p className="dimmed note">
          {undeliveredSeconds === 0
            ? 'No event has a delivery to come.'
            : `The oldest event with a delivery to come, a retry too, is ${durationOf(undeliveredSeconds)} old.`}{' '}
          Deliveries and emails were counted within the last minute.
        </p>
      </Section>
      <Section title="Late destinations">
        {destinations.length === 0 ? (
          <p className="dimmed note">No URL has deliveries that are due and not sent.</p>
        ) : (
          <PlainTable
            label="Late destinations"
            rows={destinations.map((destination, index) => ({ ...destination, index }))}
            columns={destinationColumns}
            keyOf={({ index }) => String(index)}
          />
        )}
      </Section>
      <Section title="Processes">
        {processes.length === 0 ? (
          <p className="dimmed note">No process has told yet that it runs. Each does within 15 seconds.</p>
        ) : (
          <PlainTable
            label="Processes"
            rows={processes}
            columns={processColumns}
            keyOf={({ host, pid, startedAt }) => `${host} ${pid} ${startedAt}`}
          />
        )}
      </Section>
      <Section title="Versions">
        <Facts
          of={[
            ['Postern', <code key="postern">{versions.postern}</code>],
            ['Node', <code key="node">{versions.node}</code>],
            ['PostgreSQL', <code key="postgresql">{versions.postgresql}</code>],
            ['Migration', <code key="migration">{versions.migration ?? '–'}</code>],
          ]}
        />
      </Section>
    </>
  )
}

type QueueRow = { name: string; ready: number; scheduled: number | null; claimed: number | null }

function queueRows({ outbox, deliveries, emails }: Instance['queues']): QueueRow[] {
  return [
    { name: 'Events to fan out', ready: outbox, scheduled: null, claimed: null },
    { name: 'Deliveries to webhooks', ...deliveries },
    { name: 'Emails', ...emails },
  ]
}

function countCell(value: number | null): ReactNode {
  return value === null ? <span className="dimmed">–</span> : <span className="number">{countOf(value)}</span>
}

const queueColumns: readonly Column<QueueRow>[] = [
  { header: 'Queue', cell: ({ name }) => name },
  { header: 'Due', width: '18%', align: 'right', cell: ({ ready }) => countCell(ready) },
  { header: 'Later', width: '18%', align: 'right', cell: ({ scheduled }) => countCell(scheduled) },
  { header: 'Active', width: '20%', align: 'right', cell: ({ claimed }) => countCell(claimed) },
]

const processColumns: readonly Column<Process>[] = [
  {
    header: 'Process',
    cell: ({ host, pid }) => (
      <>
        <span title={host}>{host}</span>
        <span className="second-line">process {pid}</span>
      </>
    ),
  },
  {
    header: 'State',
    width: '110px',
    cell: ({ isAlive }) => (
      <span className="state" data-tone={isAlive ? 'good' : 'bad'}>
        {isAlive ? 'Alive' : 'Silent'}
      </span>
    ),
  },
  { header: 'Roles', width: '120px', isMinor: true, cell: ({ roles }) => roles.join(', ') },
  {
    header: 'Version',
    width: '120px',
    isMinor: true,
    cell: ({ version, node }) => (
      <>
        {version}
        <span className="second-line">Node {node}</span>
      </>
    ),
  },
  { header: 'Started', width: '140px', isMinor: true, cell: ({ startedAt }) => <Time at={startedAt} /> },
  { header: 'Last seen', width: '120px', cell: ({ lastSeenAt }) => <Time at={lastSeenAt} /> },
]

const waits: Readonly<Record<NonNullable<Destination['waitsFor']>, string>> = {
  endpoint_limit: 'The endpoint',
  account_share: 'Others of the account',
  claim: 'Its turn',
}

const destinationColumns: readonly Column<Destination & { index: number }>[] = [
  {
    header: 'Host',
    cell: ({ host, accountId }) => (
      <>
        <span title={host}>{host}</span>
        <span className="second-line mono">
          <ScreenLink to={`/accounts/${accountId}`}>{accountId}</ScreenLink>
        </span>
      </>
    ),
  },
  { header: 'Due since', width: '140px', cell: ({ dueSince }) => <Time at={dueSince} /> },
  {
    header: 'Waits for',
    width: '190px',
    isMinor: true,
    cell: ({ waitsFor }) => (waitsFor === null ? <span className="dimmed">–</span> : waits[waitsFor]),
  },
  {
    header: 'In flight',
    width: '110px',
    align: 'right',
    isMinor: true,
    cell: ({ inFlight, maxInFlight }) => (
      <span className="number">{inFlight === null ? '–' : `${inFlight}, limit ${maxInFlight}`}</span>
    ),
  },
]
