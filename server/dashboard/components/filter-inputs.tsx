import { NativeSelect, TextInput } from '@mantine/core'
import type { FiltersState } from './filters.ts'
import { LateInput } from './late-input.tsx'

type Props<Name extends string> = {
  filters: FiltersState<Name>
  /** The filter that the input sets. */
  name: Name
  label: string
  /** Whether long values are usual. Default: no. */
  isWide?: boolean
}

type SelectProps<Name extends string> = Props<Name> & {
  options: readonly (string | { value: string; label: string })[]
}

/** Lets the reader choose one of `options`, or all. */
export function SelectFilter<Name extends string>({ filters, name, label, isWide, options }: SelectProps<Name>) {
  return (
    <NativeSelect
      size="xs"
      {...(isWide && { className: 'wide' })}
      label={label}
      data={[{ value: '', label: 'All' }, ...options]}
      value={filters.values[name] ?? ''}
      onChange={(event) => filters.set(name, event.currentTarget.value)}
    />
  )
}

/** Lets the reader type what is looked for. */
export function TextFilter<Name extends string>({
  filters,
  name,
  label,
  isWide,
  placeholder,
  isExact = false,
}: Props<Name> & {
  placeholder?: string
  /** Whether the value is compared as a whole, with spaces at its ends. Default: they are left out. */
  isExact?: boolean
}) {
  return (
    <LateInput
      size="xs"
      {...(isWide && { className: 'wide' })}
      label={label}
      {...(placeholder !== undefined && { placeholder })}
      keepsSpaces={isExact}
      value={filters.values[name] ?? ''}
      onCommit={(value) => filters.set(name, value)}
    />
  )
}

/** Lets the reader choose a day. */
export function DayFilter<Name extends string>({ filters, name, label }: Props<Name>) {
  return (
    <TextInput
      size="xs"
      label={label}
      type="date"
      value={filters.values[name] ?? ''}
      onChange={(event) => filters.set(name, event.currentTarget.value)}
    />
  )
}
