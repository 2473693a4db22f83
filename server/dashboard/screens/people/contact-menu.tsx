import { Menu } from '@mantine/core'
import { useScope } from '../../api/scope.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import type { ContactAct } from './contact-dialogs.tsx'
import type { Contact } from './person.ts'

type Props = { of: string; status: Contact['status']; onChoose: (act: ContactAct) => void }

/** The menu of actions on a contact, at the end of its row. */
export function ContactMenu({ of, status, onChoose }: Props) {
  const { mode } = useScope()
  return (
    <RowMenu of={of}>
      {status === 'pending' && (
        <>
          <Menu.Item onClick={() => onChoose('ask')}>Send the confirmation again</Menu.Item>
          <Menu.Item onClick={() => onChoose('confirm')} disabled={mode === 'test'}>
            {mode === 'test' ? 'Mark as confirmed (in live mode)' : 'Mark as confirmed'}
          </Menu.Item>
        </>
      )}
      {status !== 'unsubscribed' && <Menu.Item onClick={() => onChoose('unsubscribe')}>Unsubscribe</Menu.Item>}
      {status === 'unsubscribed' && (
        <Menu.Item onClick={() => onChoose('resubscribe')} disabled={mode === 'test'}>
          {mode === 'test' ? 'Subscribe again (in live mode)' : 'Subscribe again'}
        </Menu.Item>
      )}
      <Menu.Item color="red" onClick={() => onChoose('remove')}>
        Remove
      </Menu.Item>
    </RowMenu>
  )
}
