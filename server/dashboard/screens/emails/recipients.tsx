import { type Column, PlainTable } from '../../components/data-table.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import type { EmailDetails } from './email.ts'

type Recipient = EmailDetails['recipients'][number]

const columns: readonly Column<Recipient>[] = [
  {
    header: 'Address',
    cell: ({ address, name, kind }) => (
      <>
        {address}
        {(name !== null || kind !== 'to') && (
          <span className="second-line">{[name, kind === 'to' ? null : kind].filter(Boolean).join(' · ')}</span>
        )}
      </>
    ),
  },
  { header: 'State', width: '130px', cell: ({ status }) => <State of={status} /> },
  { header: 'Why', isMinor: true, cell: ({ reason }) => <span title={reason ?? undefined}>{reason ?? '–'}</span> },
  { header: 'Attempts', width: '90px', align: 'right', isMinor: true, cell: ({ attemptCount }) => attemptCount },
  {
    header: 'Next attempt',
    width: '140px',
    align: 'right',
    isMinor: true,
    cell: ({ nextAttemptAt }) => <Time at={nextAttemptAt} isAhead />,
  },
]

export function Recipients({ recipients }: { recipients: readonly Recipient[] }) {
  return (
    <PlainTable
      label="Recipients"
      rows={recipients}
      columns={columns}
      keyOf={({ address, kind }) => `${kind} ${address}`}
    />
  )
}
