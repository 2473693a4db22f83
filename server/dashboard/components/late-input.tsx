import { TextInput, type TextInputProps } from '@mantine/core'
import { useState } from 'react'

type Props = Omit<TextInputProps, 'value' | 'onChange'> & {
  value: string
  /** Whether spaces at the ends belong to the value. Default: they are left out. */
  keepsSpaces?: boolean
  onCommit: (value: string) => void
}

/** A text input that tells of its value at Enter or when it is left, so that half an address is not searched for. */
export function LateInput({ value, keepsSpaces = false, onCommit, ...rest }: Props) {
  const [typed, setTyped] = useState(value)
  const [shown, setShown] = useState(value)
  if (shown !== value) {
    setShown(value)
    setTyped(value)
  }
  const commit = () => {
    const entered = keepsSpaces ? typed : typed.trim()
    if (entered !== value) onCommit(entered)
  }
  return (
    <TextInput
      {...rest}
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.key === 'Enter') commit()
      }}
    />
  )
}
