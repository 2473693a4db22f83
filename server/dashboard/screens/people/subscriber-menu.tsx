import { Menu } from '@mantine/core'
import { useScope } from '../../api/scope.tsx'
import type { Subscriber } from './person.ts'
import type { SubscriberAct } from './subscriber-dialogs.tsx'

type Props = { subscriber: Subscriber; isEditIncluded?: boolean; onChoose: (act: SubscriberAct) => void }

/** The actions on a subscriber, as items of a menu. Default of `isEditIncluded`: true. */
export function SubscriberMenu({ subscriber: { status }, isEditIncluded = true, onChoose }: Props) {
  const { mode } = useScope()
  return (
    <>
      {isEditIncluded && <Menu.Item onClick={() => onChoose('edit')}>Edit</Menu.Item>}
      {status === 'active' && <Menu.Item onClick={() => onChoose('unsubscribe')}>Unsubscribe</Menu.Item>}
      {status === 'unsubscribed' && (
        <Menu.Item onClick={() => onChoose('resubscribe')} disabled={mode === 'test'}>
          {mode === 'test' ? 'Subscribe again (in live mode)' : 'Subscribe again'}
        </Menu.Item>
      )}
      <Menu.Item color="red" onClick={() => onChoose('delete')}>
        Delete
      </Menu.Item>
    </>
  )
}
