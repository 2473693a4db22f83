import { Button, NativeSelect } from '@mantine/core'
import { useState } from 'react'
import { importFields, type MappedColumn } from '../../../../contract/import-files.ts'
import { type Column, PlainTable } from '../../components/data-table.tsx'

const labels: Readonly<Record<(typeof importFields)[number], string>> = {
  email: 'Email',
  firstName: 'First name',
  lastName: 'Last name',
  name: 'First and last name',
  status: 'Status',
  attributes: 'Properties as JSON',
  ignore: 'Left out',
}

/** Columns that are shown before the reader asks for all. */
const shownAtFirst = 40

type Props = {
  columns: readonly MappedColumn[]
  /** The first rows of the file. */
  rows: readonly (readonly string[])[]
  propertyKeys: readonly string[]
  onChoose: (column: string, field: string) => void
}

type Row = MappedColumn & { place: number }

/** The columns of a file, the first of their cells, and what each is taken for. */
export function ColumnTable({ columns, rows, propertyKeys, onChoose }: Props) {
  const [showsAll, setShowsAll] = useState(false)
  const all = columns.map((column, place) => ({ ...column, place }))
  const options = [
    ...importFields.map((value) => ({ value: value as string, label: labels[value] })),
    ...(propertyKeys.length === 0
      ? []
      : [
          {
            group: 'Properties',
            items: propertyKeys.map((key) => ({ value: `properties.${key}`, label: key })),
          },
        ]),
  ]
  const samplesOf = ({ place }: Row) =>
    rows
      .map((row) => (row[place] ?? '').trim().slice(0, 80))
      .filter((cell) => cell !== '')
      .join(' · ')
  const tableColumns: readonly Column<Row>[] = [
    {
      header: 'Column',
      cell: ({ column }) => <span title={column}>{column === '' ? '(no name)' : column}</span>,
      phoneLine: samplesOf,
    },
    {
      header: 'First rows',
      isMinor: true,
      cell: (row) => <span title={samplesOf(row)}>{samplesOf(row) || <span className="dimmed">empty</span>}</span>,
    },
    {
      header: 'Is read as',
      width: '190px',
      cell: ({ column, field }) =>
        isNameable(column) ? (
          <NativeSelect
            size="xs"
            aria-label={`Column ${column} is read as`}
            value={field}
            onChange={(event) => onChoose(column, event.currentTarget.value)}
            data={options}
          />
        ) : (
          <span className="dimmed" title="Rename it in the file, without square brackets, to read it as something.">
            Left out: rename it
          </span>
        ),
    },
  ]
  return (
    <>
      <PlainTable
        label="Columns of the file"
        rows={showsAll ? all : all.slice(0, shownAtFirst)}
        columns={tableColumns}
        keyOf={({ place }) => String(place)}
      />
      {!showsAll && all.length > shownAtFirst && (
        <Button variant="default" mt="md" onClick={() => setShowsAll(true)}>
          Show all {all.length} columns
        </Button>
      )}
    </>
  )
}

/** Whether the API can be told what a column is. */
function isNameable(column: string): boolean {
  return column !== '' && !/[[\]]/.test(column)
}
