import { Checkbox, Stack } from '@mantine/core'
import { useChange, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Section } from '../../components/facts.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { ExactTime } from '../../components/time.tsx'
import type { Subscriber } from './person.ts'

/** Reads the choices of a person. */
export function useTopicsOf(id: string) {
  return useGet('GET /v1/subscribers/:id/topics', { params: { id } })
}

type Props = { subscriber: Subscriber; query: ReturnType<typeof useTopicsOf> }

/** Which topics a person gets, to change there. Shows nothing where the account has none. */
export function SubscriberTopics({ subscriber: { id, status }, query }: Props) {
  const { can, mode } = useScope()
  const { data, error, refetch } = query
  const choose = useChange('PATCH /v1/subscribers/:id/topics')
  const topics = data?.data ?? []
  if (error === null && topics.length === 0) return null
  const mayWrite = can('subscribers:write')
  return (
    <Section title="Topics">
      <Stack gap="xs">
        {data === undefined && error !== null && <ErrorNotice error={error} onRetry={() => void refetch()} />}
        {choose.error !== null && <ErrorNotice error={choose.error} />}
        {status === 'unsubscribed' && (
          <p className="dimmed note">This person has unsubscribed from everything, and gets none of them.</p>
        )}
        {topics.map(({ topicId, name, default: unchosen, subscribed, chosenAt }) => (
          <Checkbox
            key={topicId}
            label={name}
            description={<Choice {...{ subscribed, chosenAt, isDefault: unchosen === 'opt_out' }} />}
            checked={subscribed}
            // Somebody who left gets it again by a decision in live mode alone.
            disabled={!mayWrite || choose.isPending || (mode === 'test' && !subscribed && chosenAt !== null)}
            onChange={(event) => {
              const topics = [{ topicId, subscribed: event.currentTarget.checked }]
              choose.mutate({ params: { id }, body: { topics } })
            }}
          />
        ))}
        {can('topics:read') && <ScreenLink to="/topics">All topics</ScreenLink>}
      </Stack>
    </Section>
  )
}

type ChoiceProps = { subscribed: boolean; chosenAt: string | null; isDefault: boolean }

function Choice({ subscribed, chosenAt, isDefault }: ChoiceProps) {
  if (chosenAt === null) return isDefault ? 'Chose nothing, so gets it' : 'Chose nothing, so does not get it'
  return (
    <>
      {subscribed ? 'Joined' : 'Left'} <ExactTime at={chosenAt} />
    </>
  )
}
