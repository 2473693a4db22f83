import type { Column } from '../../components/data-table.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { Time } from '../../components/time.tsx'
import { type Contact, nameOf, type Subscriber } from './person.ts'

/** The fields that subscribers and contacts share. */
type Person = Pick<Subscriber & Contact, 'email' | 'firstName' | 'lastName' | 'status' | 'createdAt'>

/** Returns the columns of a list of people. `idOf` returns the id of the subscriber. */
export function personColumns<Row extends Person>(idOf: (row: Row) => string): Column<Row>[] {
  return [
    {
      header: 'Email',
      cell: (row) => (
        <ScreenLink to={`/subscribers/${idOf(row)}`} title={row.email}>
          {row.email}
        </ScreenLink>
      ),
      phoneLine: nameOf,
    },
    { header: 'Name', isMinor: true, cell: nameOf },
    { header: 'State', width: '140px', cell: ({ status }) => <State of={status} /> },
    {
      header: 'Added',
      width: '140px',
      align: 'right',
      isMinor: true,
      cell: ({ createdAt }) => <Time at={createdAt} />,
    },
  ]
}
