import { type UseFormReturnType, useForm } from '@mantine/form'
import { useState } from 'react'
import { ApiError } from '../api/client.ts'

/** How far the sending of a form has come. */
export type Sending = {
  /** The refusal that belongs to no field. */
  error: ApiError | null
  isRunning: boolean
  /** Give it to `onSubmit` of the form element. */
  submit: (event: React.FormEvent<HTMLFormElement>) => void
}

type ApiForm<Values extends Record<string, unknown>> = Sending & { form: UseFormReturnType<Values> }

type Options<Values> = {
  initial: Values
  /** The fields that have another name in the body, by their path there. */
  fieldOf?: Readonly<Record<string, keyof Values & string>>
  /** The fields with fields of their own: a fault in one of them stands at its whole path, `abTest.variants[1].name`. */
  groups?: readonly (keyof Values & string)[]
  /** Faults that are found without the API, by field. In a group, by the whole path. */
  check?: (values: Values) => Readonly<Record<string, string | null>>
  send: (values: Values) => Promise<void>
}

/** A form whose faults are told by the API, each at its field. */
export function useApiForm<Values extends Record<string, unknown>>({
  initial,
  fieldOf = {},
  groups = [],
  check,
  send,
}: Options<Values>): ApiForm<Values> {
  const [error, setError] = useState<ApiError | null>(null)
  const [isRunning, setRunning] = useState(false)
  const form = useForm<Values>({
    initialValues: initial,
    ...(check && { validate: (values) => check(values) as Record<string, string> }),
  })

  async function run(values: Values): Promise<void> {
    setRunning(true)
    setError(null)
    try {
      await send(values)
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      const atFields = thrown.details.flatMap(({ path, message }) => {
        const place = path.replace(/^body\./, '')
        const field = fieldOf[place] ?? place.replace(/[[.].*/, '')
        return field in initial ? [[groups.includes(field) ? place : field, capitalized(message)] as const] : []
      })
      form.setErrors(Object.fromEntries(atFields))
      setError(atFields.length > 0 && atFields.length === thrown.details.length ? null : thrown)
    } finally {
      setRunning(false)
    }
  }

  return { form, error, isRunning, submit: form.onSubmit((values) => void run(values)) }
}

/** Returns what the API says of a field, to stand by itself. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
