import { Box, Button } from '@mantine/core'
import type { ReactNode } from 'react'
import { DataTable, type DataTableProps } from './data-table.tsx'
import { NothingFits } from './empty.tsx'
import { Filters } from './filter-bar.tsx'
import type { FiltersState } from './filters.ts'

type Props<Row, Name extends string> = DataTableProps<Row> & {
  filters: FiltersState<Name>
  /** The inputs that set the filters. */
  inputs: ReactNode
  /** Shown in place of the table when no row fits the filters that are set. */
  nothingFits: { title: string; hint: ReactNode }
  /** Says that the options of a filter could not be read. Default: they were. */
  unreadOptions?: ReactNode
  /** Shown between the filters and the table. Default: nothing. */
  notice?: ReactNode
}

/**
 * The frame of a list that can be filtered: the filters, the table with its further pages, and what stands there when
 * nothing fits (`nothingFits`) or nothing is there yet (`empty`).
 */
export function FilteredList<Row, Name extends string>({
  filters: { isSet, clear },
  inputs,
  nothingFits,
  unreadOptions = null,
  notice,
  empty,
  ...table
}: Props<Row, Name>) {
  return (
    <>
      <Filters isSet={isSet}>
        {inputs}
        {isSet && (
          <Button size="xs" variant="subtle" color="gray" onClick={clear}>
            Clear
          </Button>
        )}
      </Filters>
      {unreadOptions !== null && <Box mb="sm">{unreadOptions}</Box>}
      {notice}
      <DataTable
        {...table}
        empty={
          isSet ? (
            <NothingFits title={nothingFits.title} onClear={clear}>
              {nothingFits.hint}
            </NothingFits>
          ) : (
            empty
          )
        }
      />
    </>
  )
}
