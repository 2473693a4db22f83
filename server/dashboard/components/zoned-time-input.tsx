import { TextInput, type TextInputProps } from '@mantine/core'
import { momentOf } from './local-time.ts'

/** The name of the reader's time zone, such as `Europe/Berlin`. */
export const readerZone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** With the offset, since clocks show the same time twice where summer ends. */
const withOffset = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'shortOffset',
})

type Props = Omit<TextInputProps, 'value'> & {
  value?: string
  /** See `momentOf`. */
  initial: string
}

/**
 * An input for a time in the reader's zone, to the minute, and the moment that it means. Its value is what `localTime`
 * returns; empty: none is chosen.
 */
export function ZonedTimeInput({ value = '', initial, ...props }: Props) {
  const moment = momentOf(value, initial)
  const chosen = moment === undefined ? '.' : `: ${withOffset.format(new Date(moment))}.`
  return (
    <TextInput
      type="datetime-local"
      label="Time"
      description={`In your time zone, ${readerZone}${chosen}`}
      inputWrapperOrder={['label', 'input', 'description', 'error']}
      required
      value={value}
      {...props}
    />
  )
}
