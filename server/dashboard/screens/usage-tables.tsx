import type { Result } from '../api/client.ts'
import { type Column, PlainTable } from '../components/data-table.tsx'
import { ShareBar } from '../components/share-bar.tsx'
import { countOf, percentOf } from './overview/format.ts'

type Account = Result<'GET /v1/account'>
type Usage = Pick<Account, 'mode' | 'requests' | 'webhooks' | 'apiKeys' | 'domains' | 'members' | 'invitations'>
type Months = Account['months']

type AllowanceRow = { name: string; used: number; limit: number | null }

const allowanceColumns: readonly Column<AllowanceRow>[] = [
  { header: 'What', cell: ({ name }) => name },
  {
    header: 'Used',
    width: '104px',
    align: 'right',
    cell: ({ used }) => <span className="number">{countOf(used)}</span>,
  },
  {
    header: 'Limit',
    width: '104px',
    align: 'right',
    cell: ({ limit }) =>
      limit === null ? <span className="dimmed">None</span> : <span className="number">{countOf(limit)}</span>,
  },
  {
    header: 'Share',
    width: '30%',
    isMinor: true,
    cell: ({ used, limit }) =>
      limit !== null && (
        <span className="share">
          <ShareBar share={used / limit} />
          <span className="number">{shareOf(used / limit)}</span>
        </span>
      ),
  },
]

/** A table of the usage of an account and its limits. */
export function Allowances({ usage }: { usage: Usage }) {
  const { requests, webhooks, apiKeys, domains, members, invitations, mode } = usage
  const rows: AllowanceRow[] = [
    { name: 'Requests with API keys, this minute', used: requests.used, limit: requests.limit },
    {
      name: 'Requests, busiest minute of the last hour',
      used: requests.busiest?.used ?? 0,
      limit: requests.limit,
    },
    { name: 'Webhooks', ...webhooks },
    { name: mode === 'test' ? 'API keys of test mode' : 'API keys of live mode', ...apiKeys },
    { name: 'Sending domains', ...domains },
    { name: 'Members', ...members },
    { name: 'Open invitations', ...invitations },
  ]
  return (
    <div className="wrapped">
      <PlainTable label="Limits" rows={rows} columns={allowanceColumns} keyOf={({ name }) => name} />
    </div>
  )
}

/** Returns a share in whole percent. Little is not told as nothing. */
function shareOf(share: number): string {
  return share > 0 && share < 0.005 ? '< 1 %' : percentOf(share, 0)
}

type MonthRow = { name: string; counts: readonly number[] }

const monthName = new Intl.DateTimeFormat(undefined, { month: 'short', year: 'numeric', timeZone: 'UTC' })
const dayName = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** A table of the counts of an account in this month and in the one before. */
export function Months({ months }: { months: Months }) {
  const row = (name: string, of: (month: Months[number]) => number): MonthRow => ({ name, counts: months.map(of) })
  const rows = [
    row('Emails sent, by recipient', ({ emails }) => emails.sent),
    row('Emails delivered', ({ emails }) => emails.delivered),
    row('Emails bounced', ({ emails }) => emails.bounced),
    row('Complaints', ({ emails }) => emails.complained),
    row('Emails given up on', ({ emails }) => emails.failed),
    row('Recipients not written to', ({ emails }) => emails.suppressed),
    row('Events delivered to webhooks', ({ webhooks }) => webhooks.succeededDeliveries),
    row('Events not delivered', ({ webhooks }) => webhooks.failedDeliveries),
    row('Requests to webhooks', ({ webhooks }) => webhooks.attempts),
  ]
  const columns: Column<MonthRow>[] = [
    { header: 'What', cell: ({ name }) => name },
    ...months.map(
      (month, index): Column<MonthRow> => ({
        header: headerOf(month),
        width: '27%',
        align: 'right',
        cell: ({ counts }) => <span className="number">{countOf(counts[index] ?? 0)}</span>,
      }),
    ),
  ]
  return (
    <div className="wrapped">
      <PlainTable label="Months" rows={rows} columns={columns} keyOf={({ name }) => name} />
    </div>
  )
}

/** Returns the name of a month of UTC; where its first days are not kept, with the first day that is. */
function headerOf({ since }: Months[number]): string {
  const start = new Date(since)
  const name = monthName.format(start)
  return start.getUTCDate() === 1 ? name : `${name}, from ${dayName.format(start)}`
}
