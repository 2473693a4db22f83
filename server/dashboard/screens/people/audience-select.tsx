import { NativeSelect } from '@mantine/core'
import { useChoices } from '../../api/hooks.ts'
import { Empty } from '../../components/empty.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { newestOffered } from '../../components/newest-offered.ts'
import { unread } from '../../components/unread.tsx'

type Props = { value: string; onChange: (audienceId: string) => void }

/** Lets the reader choose an audience. Empty: none is chosen. */
export function AudienceSelect({ value, onChange }: Props) {
  const audiences = useChoices('GET /v1/audiences', { query: {} })
  const known = audiences.data?.map(({ id, name }) => ({ value: id, label: name })) ?? []
  // One that is older than those that are offered, and was linked to.
  const isOther = value !== '' && audiences.data !== undefined && !known.some((option) => option.value === value)
  return (
    <NativeSelect
      label="Audience"
      description={newestOffered(audiences)}
      error={unread(audiences, 'The audiences')}
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
  return useChoices('GET /v1/audiences', { query: {} }).data?.length === 0
}

/** Stands where an audience is needed and there is none. */
export function NoAudience({ what }: { what: string }) {
  return (
    <Empty title={`${what} needs an audience`} action={<LinkButton to="/audiences">To the audiences</LinkButton>}>
      Its people are in one. Create it first.
    </Empty>
  )
}
