import { Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { useChange } from '../../api/hooks.ts'
import { makePasskey } from '../../api/passkeys.ts'
import { useScope } from '../../api/scope.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { browserOf } from './browser-of.ts'
import { ProofFields, proofOf } from './proof-fields.tsx'

/** Asks who the user is, then has the browser make a passkey. */
export function AddPasskey({ onClose }: { onClose: () => void }) {
  const { user } = useScope().session
  const add = useChange('POST /v1/user/passkeys')
  const [needsCode, setNeedsCode] = useState(false)
  const { form, ...sending } = useApiForm({
    initial: { name: browserOf(navigator.userAgent), password: '', code: '' },
    send: async ({ name, ...proof }) => {
      try {
        const made = await makePasskey(proofOf(proof, { hasPassword: user.hasPassword, needsCode }))
        await add.mutateAsync({ body: { name, ...made } })
        onClose()
      } catch (thrown) {
        if (!(thrown instanceof ApiError && thrown.code === 'second_factor_needed')) throw thrown
        setNeedsCode(true)
      }
    },
  })
  return (
    <FormDialog title="Add a passkey" action="Continue" {...sending} onClose={onClose}>
      <Text>Your browser then asks where to keep it, and for the fingerprint, face or PIN of your device.</Text>
      <TextInput
        label="Name"
        description="Where it is kept, to tell it from others."
        required
        {...form.getInputProps('name')}
      />
      <ProofFields form={form} hasPassword={user.hasPassword} needsCode={needsCode} />
    </FormDialog>
  )
}
