import { useNavigate, useSearch } from '@tanstack/react-router'

/** Returns `values` without those that are undefined, as the query of a request wants them. */
export function given<Values extends object>(
  values: Values,
): { [Name in keyof Values]?: Exclude<Values[Name], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}

/** The filters of a list that are set. */
export type FiltersState<Name extends string> = {
  values: Partial<Record<Name, string>>
  set: (name: Name, value: string | null) => void
  clear: () => void
  isSet: boolean
}

/** The filters of a list, kept in the address so that it can be shared. */
export function useFilters<Name extends string>(names: readonly Name[]): FiltersState<Name> {
  const search: Record<string, unknown> = useSearch({ strict: false })
  const navigate = useNavigate()
  const values: Partial<Record<Name, string>> = {}
  for (const name of names) {
    const value = search[name]
    if ((typeof value === 'string' || typeof value === 'number') && value !== '') values[name] = String(value)
  }
  const go = (next: Record<string, unknown>) => void navigate({ to: '.', search: next, replace: true })
  return {
    values,
    set: (name, value) => go({ ...values, [name]: value === null || value === '' ? undefined : value }),
    clear: () => go({}),
    isSet: Object.keys(values).length > 0,
  }
}
