import { SelectFilter, TextFilter } from '../../components/filter-inputs.tsx'
import type { FiltersState } from '../../components/filters.ts'
import { statusOptions } from './person.ts'

/** What is said where the search finds nobody. */
export const personSearchHint = 'The search compares how addresses, names and last names begin, in any letter case.'

/** The filters of a list of people. */
export function PersonFilters({ filters }: { filters: FiltersState<'search' | 'status'> }) {
  return (
    <>
      <TextFilter filters={filters} name="search" label="Search" isWide placeholder="Address or name" />
      <SelectFilter filters={filters} name="status" label="State" options={statusOptions} />
    </>
  )
}
