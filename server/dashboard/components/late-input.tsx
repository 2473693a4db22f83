import { TextInput, type TextInputProps } from '@mantine/core'
import { useState } from 'react'

type Props = Omit<TextInputProps, 'value' | 'onChange'> & { value: string; onCommit: (value: string) => void }

/** A text input that tells of its value at Enter or when it is left, so that half an address is not searched for. */
export function LateInput({ value, onCommit, ...rest }: Props) {
  const [typed, setTyped] = useState(value)
  const [shown, setShown] = useState(value)
  if (shown !== value) {
    setShown(value)
    setTyped(value)
  }
  const commit = () => {
    if (typed.trim() !== value) onCommit(typed.trim())
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
