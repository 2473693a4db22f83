import { Button, Group, Menu } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useChange } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { MoreMenu } from '../../components/row-menu.tsx'
import { EditWebhook } from './edit-webhook.tsx'
import { NewSecret } from './new-secret.tsx'
import { Recover } from './recover.tsx'
import { TestWebhook } from './test-webhook.tsx'
import type { Webhook } from './webhook.ts'

type Act = 'test' | 'edit' | 'rotate' | 'recover' | 'switch' | 'delete'

/** The actions on a webhook: a button and a menu. */
export function WebhookActions({ webhook }: { webhook: Webhook }) {
  const [act, setAct] = useState<Act | null>(null)
  const close = () => setAct(null)
  const isEnabled = webhook.status === 'enabled'
  return (
    <Group gap="xs">
      <MoreMenu>
        <Menu.Item onClick={() => setAct('edit')}>Edit</Menu.Item>
        <Menu.Item onClick={() => setAct('recover')} disabled={!isEnabled}>
          Send again what it missed
        </Menu.Item>
        <Menu.Item onClick={() => setAct('rotate')}>Rotate the secret</Menu.Item>
        <Menu.Item onClick={() => setAct('switch')}>{isEnabled ? 'Disable' : 'Enable'}</Menu.Item>
        <Menu.Item color="red" onClick={() => setAct('delete')}>
          Delete
        </Menu.Item>
      </MoreMenu>
      <Button onClick={() => setAct('test')}>Send a test</Button>
      {act === 'test' && <TestWebhook webhook={webhook} onClose={close} />}
      {act === 'edit' && <EditWebhook webhook={webhook} onClose={close} />}
      {act === 'recover' && <Recover webhook={webhook} onClose={close} />}
      {act === 'rotate' && <RotateSecret webhook={webhook} onClose={close} />}
      {act === 'switch' && <SwitchStatus webhook={webhook} onClose={close} />}
      {act === 'delete' && <DeleteWebhook webhook={webhook} onClose={close} />}
    </Group>
  )
}

type Props = { webhook: Webhook; onClose: () => void }

function RotateSecret({ webhook: { id }, onClose }: Props) {
  const rotate = useChange('POST /v1/webhooks/:id/rotate-secret')
  if (rotate.data !== undefined) return <NewSecret secret={rotate.data.secret} onClose={onClose} />
  return (
    <Confirm
      title="Rotate the signing secret?"
      action="Rotate the secret"
      isRunning={rotate.isPending}
      error={rotate.error}
      onClose={onClose}
      onConfirm={() => rotate.mutate({ params: { id } })}
    >
      A new secret is made and shown once. <code>X-Service-Signature</code> uses it from the next attempt;{' '}
      <code>webhook-signature</code> is signed with the old one too, for 24 hours.
    </Confirm>
  )
}

function SwitchStatus({ webhook: { id, status }, onClose }: Props) {
  const update = useChange('PATCH /v1/webhooks/:id')
  const isEnabled = status === 'enabled'
  const next = isEnabled ? 'disabled' : 'enabled'
  return (
    <Confirm
      title={isEnabled ? 'Disable this webhook?' : 'Enable this webhook?'}
      action={isEnabled ? 'Disable it' : 'Enable it'}
      isHarmless={!isEnabled}
      isRunning={update.isPending}
      error={update.error}
      onClose={onClose}
      onConfirm={() => update.mutate({ params: { id }, body: { status: next } }, { onSuccess: onClose })}
    >
      {isEnabled
        ? 'It receives nothing any more, and its pending deliveries are canceled.'
        : 'It receives events from now on. What came meanwhile is sent only by “Send again what it missed”.'}
    </Confirm>
  )
}

function DeleteWebhook({ webhook: { id, url }, onClose }: Props) {
  const { path } = useScope()
  const navigate = useNavigate()
  const remove = useChange('DELETE /v1/webhooks/:id')
  const onSuccess = () => {
    notifications.show({ message: `The webhook ${url} was deleted.` })
    void navigate({ to: path('/webhooks') })
  }
  return (
    <Confirm
      title="Delete this webhook?"
      action="Delete the webhook"
      typed={new URL(url).host}
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { id } }, { onSuccess })}
    >
      Nothing is sent to {url} any more. Pending deliveries are canceled, and its log is deleted with it.
    </Confirm>
  )
}
