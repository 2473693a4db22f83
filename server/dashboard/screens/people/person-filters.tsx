import { SelectFilter, TextFilter } from '../../components/filter-inputs.tsx'
import type { FiltersState } from '../../components/filters.ts'
import { contactStatusOptions, statusOptions } from './person.ts'

/** The hint for a search without results. */
export const personSearchHint = 'The search compares how addresses, names and last names begin, in any letter case.'

type Props = {
  filters: FiltersState<'search' | 'status'>
  /** Whether it is a list of contacts, who may be pending. Default: no. */
  ofContacts?: boolean
}

/** The filters of a list of people. */
export function PersonFilters({ filters, ofContacts = false }: Props) {
  const options = ofContacts ? contactStatusOptions : statusOptions
  return (
    <>
      <TextFilter filters={filters} name="search" label="Search" isWide placeholder="Address or name" />
      <SelectFilter filters={filters} name="status" label="State" options={options} />
    </>
  )
}
