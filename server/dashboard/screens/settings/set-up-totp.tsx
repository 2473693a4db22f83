import { Button, Group, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { useUserChange } from '../../api/hooks.ts'
import { queryClient, sessionQuery } from '../../api/query-client.ts'
import { Copyable } from '../../components/copyable.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { QrCode } from '../../components/qr-code.tsx'
import { useApiForm } from '../../components/use-api-form.ts'

type Secret = Result<'POST /v1/user/totp'>

/** Password, then the secret for the app, then a code of it, then the recovery codes. */
export function SetUpTotp({ onClose }: { onClose: () => void }) {
  const [secret, setSecret] = useState<Secret | null>(null)
  const [recoveryCodes, setRecoveryCodes] = useState<readonly string[] | null>(null)
  const title = recoveryCodes === null ? 'Set up a second factor' : 'Keep your recovery codes'
  return (
    <Dialog onClose={onClose} title={title} closeOnClickOutside={recoveryCodes === null}>
      {secret === null && <AskPassword onSecret={setSecret} />}
      {secret !== null && recoveryCodes === null && <AskCode secret={secret} onConfirmed={setRecoveryCodes} />}
      {recoveryCodes !== null && <RecoveryCodes codes={recoveryCodes} onClose={onClose} />}
    </Dialog>
  )
}

function AskPassword({ onSecret }: { onSecret: (secret: Secret) => void }) {
  const start = useUserChange('POST /v1/user/totp')
  const { form, error, isRunning, submit } = useApiForm({
    initial: { password: '' },
    send: async (body) => onSecret(await start.mutateAsync({ body })),
  })
  return (
    <form onSubmit={submit}>
      <Stack>
        {error !== null && <ErrorNotice error={error} />}
        <PasswordInput
          label="Your password"
          autoComplete="current-password"
          required
          data-autofocus
          {...form.getInputProps('password')}
        />
        <Group justify="flex-end">
          <Button type="submit" loading={isRunning}>
            Continue
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

type AskCodeProps = { secret: Secret; onConfirmed: (recoveryCodes: readonly string[]) => void }

function AskCode({ secret, onConfirmed }: AskCodeProps) {
  const confirm = useUserChange('POST /v1/user/totp/confirm')
  const { form, error, isRunning, submit } = useApiForm({
    initial: { code: '' },
    send: async ({ code }) => {
      const { recoveryCodes } = await confirm.mutateAsync({ body: { code: code.replaceAll(' ', '') } })
      onConfirmed(recoveryCodes)
    },
  })
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text>Scan this with your authenticator app, or type the secret into it. Then enter the code it shows.</Text>
        <Group justify="center">
          <QrCode text={secret.uri} label="QR code of the secret" />
        </Group>
        <Copyable label="Copy the secret" value={secret.secret} wraps />
        {error !== null && <ErrorNotice error={error} />}
        <TextInput
          label="Code"
          inputMode="numeric"
          autoComplete="one-time-code"
          required
          autoFocus
          {...form.getInputProps('code')}
        />
        <Group justify="flex-end">
          <Button type="submit" loading={isRunning}>
            Turn on
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

function RecoveryCodes({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) {
  const finish = () => {
    // The session tells that there is a second factor now. Not earlier: the codes are shown only here.
    void queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey })
    onClose()
  }
  return (
    <Stack>
      <Text>
        Each of these signs you in once if you lose the app. They are shown only now: print them, or keep them in your
        password manager.
      </Text>
      <pre className="block">{codes.join('\n')}</pre>
      <Copyable label="Copy all codes" value={codes.join(' ')} wraps />
      <Group justify="flex-end">
        <Button onClick={finish}>I have kept them</Button>
      </Group>
    </Stack>
  )
}
