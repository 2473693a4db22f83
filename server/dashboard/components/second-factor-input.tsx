import { TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'

/** The field for a code of the second factor, or a recovery code. It takes the focus. */
export function SecondFactorInput<Values extends { code: string }>({ form }: { form: UseFormReturnType<Values> }) {
  return (
    <TextInput
      label="Code"
      description="From your authenticator app, or one of your recovery codes."
      autoComplete="one-time-code"
      inputMode="text"
      required
      autoFocus
      {...form.getInputProps('code')}
    />
  )
}
