import { Button, Group } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useFirstReading, useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { Facts } from '../../components/facts.tsx'
import { Loaded, Loading } from '../../components/loaded.tsx'
import { MoreMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { State } from '../../components/state.tsx'
import { ExactTime } from '../../components/time.tsx'
import { nameOf, type Subscriber } from './person.ts'
import { SubscriberAudiences } from './subscriber-audiences.tsx'
import { type SubscriberAct, SubscriberDialog } from './subscriber-dialogs.tsx'
import { SubscriberEmails } from './subscriber-emails.tsx'
import { SubscriberMenu } from './subscriber-menu.tsx'
import { SubscriberProperties, useDeclared } from './subscriber-properties.tsx'
import { SubscriberTopics, useTopicsOf } from './subscriber-topics.tsx'
import { SuppressionNotice, useSuppression } from './suppression-notice.tsx'

/** One person: whether they can be written to, their audiences, and what was sent to them. */
export function SubscriberDetail() {
  const { id = '' } = useParams({ strict: false })
  const { can } = useScope()
  const query = useGet('GET /v1/subscribers/:id', { params: { id } })
  const { data: subscriber } = query
  return (
    <Screen
      title={subscriber?.email ?? 'Subscriber'}
      parent={{ label: 'Subscribers', path: '/subscribers' }}
      subtitle={subscriber && <State of={subscriber.status} />}
      action={subscriber && can('subscribers:write') && <Actions subscriber={subscriber} />}
    >
      <Loaded query={query} what="subscriber">
        {(read) => <Details subscriber={read} />}
      </Loaded>
    </Screen>
  )
}

function Details({ subscriber }: { subscriber: Subscriber }) {
  const { can } = useScope()
  const { id, email, createdAt, updatedAt } = subscriber
  const suppression = useSuppression(email)
  const declared = useDeclared()
  const topics = useTopicsOf(id)
  if (useFirstReading([suppression, declared, topics])) return <Loading />
  return (
    <>
      <SuppressionNotice query={suppression} />
      <Facts
        of={[
          ['Name', nameOf(subscriber)],
          ['Added', <ExactTime key="at" at={createdAt} />],
          ...(updatedAt === createdAt ? [] : ([['Changed', <ExactTime key="at" at={updatedAt} />]] as const)),
          ...(can('events:read')
            ? ([
                [
                  'History',
                  <ScreenLink key="history" to="/events" search={{ search: id }}>
                    What happened to this person
                  </ScreenLink>,
                ],
              ] as const)
            : []),
          ['ID', <Copyable key="id" label="Copy the ID" value={id} />],
        ]}
      />
      {can('contacts:read') && <SubscriberProperties subscriber={subscriber} query={declared} />}
      <SubscriberTopics subscriber={subscriber} query={topics} />
      {can('contacts:read') && <SubscriberAudiences subscriber={subscriber} />}
      {can('emails:read') && <SubscriberEmails address={email} />}
    </>
  )
}

function Actions({ subscriber }: { subscriber: Subscriber }) {
  const [act, setAct] = useState<SubscriberAct | null>(null)
  return (
    <Group gap="xs">
      <MoreMenu>
        <SubscriberMenu subscriber={subscriber} isEditIncluded={false} onChoose={setAct} />
      </MoreMenu>
      <Button onClick={() => setAct('edit')}>Edit</Button>
      {act !== null && (
        <SubscriberDialog act={act} subscriber={subscriber} leadsTo="/subscribers" onClose={() => setAct(null)} />
      )}
    </Group>
  )
}
