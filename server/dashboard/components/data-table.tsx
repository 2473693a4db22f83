import { Box, Button, Skeleton, Table, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import type { List } from '../api/hooks.ts'
import { ErrorNotice } from './error-notice.tsx'

export type Column<Row> = {
  header: string
  cell: (row: Row) => ReactNode
  /** CSS width. Default: what is left. */
  width?: string
  align?: 'right'
  /** A second line of the cell on a phone, in place of a column that is left out there. */
  phoneLine?: (row: Row) => ReactNode
  /** Left out on a phone. */
  isMinor?: boolean
  /** The header is for screen readers only: above buttons. */
  isHeaderHidden?: boolean
}

/** Returns the column of the buttons or of the menu at the end of each row. */
export function actionsColumn<Row>(width: string, cell: (row: Row) => ReactNode): Column<Row> {
  return { header: 'Actions', isHeaderHidden: true, width, align: 'right', cell }
}

export type DataTableProps<Row> = {
  /** The name of the table, for screen readers. */
  label: string
  list: List<Row>
  columns: readonly Column<Row>[]
  keyOf: (row: Row) => string
  /** Shown in place of the table when there are no rows. */
  empty: ReactNode
  /** Whether a row came in while the list was shown: it is marked. Default: none did. */
  isNew?: (row: Row) => boolean
}

/** The keys of the rows that stand there while a list is read. */
const skeletons = ['1', '2', '3', '4', '5', '6']

/** A table that keeps its columns while it loads, and reads further pages on request. */
export function DataTable<Row>({ label, list, columns, keyOf, empty, isNew }: DataTableProps<Row>) {
  const { rows, error } = list
  const notice = error !== null && <ErrorNotice error={error} onRetry={list.retry} />
  if (rows === undefined && notice) return notice
  if (rows?.length === 0 && !list.hasMore) {
    return (
      <>
        {empty}
        {notice}
      </>
    )
  }
  return (
    <>
      <PlainTable label={label} rows={rows} columns={columns} keyOf={keyOf} {...(isNew && { isNew })} />
      {rows?.length === 0 && (
        <Text c="dimmed" mt="md">
          No row fits so far. The rest has not been searched yet.
        </Text>
      )}
      {list.hasMore && !list.isLooking && (
        <Button variant="default" mt="md" loading={list.isLoadingMore} onClick={list.loadMore}>
          {rows?.length === 0 ? 'Look further' : 'Show more'}
        </Button>
      )}
      {/* Below the button, which keeps its place. */}
      {notice && <Box mt="md">{notice}</Box>}
    </>
  )
}

type PlainProps<Row> = Pick<DataTableProps<Row>, 'label' | 'columns' | 'keyOf' | 'isNew'> & {
  /** Undefined: not read yet. */
  rows: readonly Row[] | undefined
}

/** A table of all of `rows`. */
export function PlainTable<Row>({ label, rows, columns, keyOf, isNew }: PlainProps<Row>) {
  return (
    <div className="table-frame">
      <Table layout="fixed" aria-label={label} aria-busy={rows === undefined} className="data-table">
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Table.Th key={column.header} {...placeOf(column)}>
                {column.isHeaderHidden ? <span className="visually-hidden">{column.header}</span> : column.header}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows === undefined
            ? skeletons.map((key) => (
                <TableRow key={key} columns={columns} cell={() => <Skeleton height={12} my={4} width="70%" />} />
              ))
            : rows.map((row) => (
                <TableRow
                  key={keyOf(row)}
                  columns={columns}
                  cell={(column) => cellOf(column, row)}
                  isNew={isNew?.(row) === true}
                />
              ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}

type RowProps<Row> = { columns: readonly Column<Row>[]; cell: (column: Column<Row>) => ReactNode; isNew?: boolean }

function TableRow<Row>({ columns, cell, isNew = false }: RowProps<Row>) {
  return (
    <Table.Tr {...(isNew && { 'data-new': true })}>
      {columns.map((column) => (
        <Table.Td key={column.header} {...placeOf(column)}>
          {cell(column)}
        </Table.Td>
      ))}
    </Table.Tr>
  )
}

function cellOf<Row>({ cell, phoneLine }: Column<Row>, row: Row) {
  return (
    <>
      {cell(row)}
      {phoneLine && <span className="second-line phone-only">{phoneLine(row)}</span>}
    </>
  )
}

function placeOf<Row>({ width, align, isMinor }: Column<Row>) {
  return {
    ...(width !== undefined && { w: width }),
    ...(align !== undefined && { ta: align }),
    ...(isMinor && { className: 'minor' }),
  }
}
