import { NativeSelect } from '@mantine/core'
import { useGet } from '../../api/hooks.ts'
import { Empty } from '../../components/empty.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { unread } from '../../components/unread.tsx'

/** As many audiences as one page of the API has. */
const offered = 100

type Props = { value: string; onChange: (audienceId: string) => void }

/** Lets the reader choose an audience. Empty: none is chosen. */
export function AudienceSelect({ value, onChange }: Props) {
  const query = useGet('GET /v1/audiences', { query: { limit: offered } })
  const { data: audiences } = query
  const known = audiences?.data.map(({ id, name }) => ({ value: id, label: name })) ?? []
  // One that is older than those that are offered, and was linked to.
  const isOther = value !== '' && audiences !== undefined && !known.some((option) => option.value === value)
  return (
    <NativeSelect
      label="Audience"
      description={audiences?.nextCursor == null ? undefined : `The newest ${offered} are offered.`}
      error={unread(query, 'The audiences')}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      data={[
        { value: '', label: 'Choose one' },
        ...known,
        ...(isOther ? [{ value, label: 'The audience you came from' }] : []),
      ]}
    />
  )
}

/** Returns true when the account has no audience. */
export function useHasNoAudience(): boolean {
  return useGet('GET /v1/audiences', { query: { limit: offered } }).data?.data.length === 0
}

/** Stands where an audience is needed and there is none. */
export function NoAudience({ what }: { what: string }) {
  return (
    <Empty title={`${what} needs an audience`} action={<LinkButton to="/audiences">To the audiences</LinkButton>}>
      Its people are in one. Create it first.
    </Empty>
  )
}
