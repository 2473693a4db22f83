import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useState } from 'react'
import { useGet } from '../../api/hooks.ts'
import { unread } from '../../components/unread.tsx'
import { personSearchHint } from '../people/person-filters.tsx'
import type { ShownFor } from './use-campaign-rendering.ts'

/** People who are offered. */
const offered = 10
const pauseMs = 300

type Props = {
  person: ShownFor | null
  onChoose: (person: ShownFor | null) => void
  /** Default: those of a preview. */
  words?: { label: string; description: string; placeholder: string; clear: string }
  error?: React.ReactNode
}

const ofPreview = {
  label: 'Show it for',
  description: 'Whose name and properties stand in it. Empty: a sample.',
  placeholder: 'Ada Lovelace, a sample',
  clear: 'Show the sample',
}

/** Chooses whose values stand in a preview or a test, by a search. */
export function PersonField({ person, onChoose, words = ofPreview, error }: Props) {
  const [typed, setTyped] = useState('')
  const [search] = useDebouncedValue(typed === person?.email ? '' : typed.trim(), pauseMs)
  const query = useGet('GET /v1/subscribers', { query: { limit: offered, ...(search !== '' && { search }) } })
  const people = query.data?.data ?? []
  const isListed = person === null || people.some(({ id }) => id === person.id)
  const options = [...(isListed || person === null ? [] : [person]), ...people]
  return (
    <Select
      mt="md"
      label={words.label}
      description={words.description}
      placeholder={words.placeholder}
      error={unread(query, 'The subscribers') ?? error}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': words.clear }}
      nothingFoundMessage={query.data === undefined ? null : personSearchHint}
      filter={({ options: all }) => all}
      searchValue={typed}
      onSearchChange={setTyped}
      data={options.map(({ id, email }) => ({ value: id, label: email }))}
      value={person?.id ?? null}
      onChange={(id) => {
        const chosen = options.find((one) => one.id === id)
        onChoose(chosen === undefined ? null : { id: chosen.id, email: chosen.email })
      }}
    />
  )
}
