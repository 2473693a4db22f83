import type { Column } from '../../components/data-table.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'

/** The fields that subscribers and contacts share. */
type Person = {
  email: string
  firstName: string | null
  lastName: string | null
  status: string
  createdAt: string
}

/** The columns of a list of people. */
export const personColumns: readonly Column<Person>[] = [
  { header: 'Email', cell: ({ email }) => <span title={email}>{email}</span>, phoneLine: nameOf },
  { header: 'Name', isMinor: true, cell: nameOf },
  { header: 'State', width: '140px', cell: ({ status }) => <State of={status} /> },
  { header: 'Added', width: '140px', align: 'right', isMinor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
]

/** Returns the name of a person in one line; a dash where none is known. */
function nameOf({ firstName, lastName }: Person): string {
  return [firstName, lastName].filter((part) => part !== null && part !== '').join(' ') || '–'
}
