import { TextInput, type TextInputProps } from '@mantine/core'

/** The name of the reader's time zone, such as `Europe/Berlin`. */
export const readerZone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** An input for a time in the reader's zone, to the minute. Its value is what `localTime` returns; empty: none is chosen. */
export function ZonedTimeInput(props: TextInputProps) {
  return (
    <TextInput type="datetime-local" label="Time" description={`Of your zone, ${readerZone}.`} required {...props} />
  )
}
