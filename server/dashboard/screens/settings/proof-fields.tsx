import { PasswordInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { SecondFactorInput } from '../../components/second-factor-input.tsx'

type Proof = { password: string; code: string }
type Asked = { hasPassword: boolean; needsCode: boolean }

/** The fields with which a user proves again who they are. */
export function ProofFields<Values extends Proof>({
  form,
  hasPassword,
  needsCode,
}: Asked & { form: UseFormReturnType<Values> }) {
  return (
    <>
      {hasPassword && (
        <PasswordInput
          label="Your password"
          autoComplete="current-password"
          required
          data-autofocus
          readOnly={needsCode}
          {...form.getInputProps('password')}
        />
      )}
      {needsCode && <SecondFactorInput form={form} />}
    </>
  )
}

/** Returns what of the fields is sent. */
export function proofOf({ password, code }: Proof, { hasPassword, needsCode }: Asked) {
  return { ...(hasPassword && { password }), ...(needsCode && { code: code.replaceAll(' ', '') }) }
}
