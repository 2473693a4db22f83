import { NativeSelect, TextInput } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Property } from './property.ts'

type Props = {
  type: Property['type']
  label: ReactNode
  description?: string
  /** As it is typed. Empty: no value. */
  value?: string
  onChange?: (event: { currentTarget: { value: string } }) => void
  error?: ReactNode
}

const yesOrNo = [
  { value: '', label: 'No value' },
  { value: 'true', label: 'Yes' },
  { value: 'false', label: 'No' },
]

/** The input for a value of a property, by its type. */
export function PropertyInput({ type, ...input }: Props) {
  if (type === 'boolean') return <NativeSelect {...input} data={yesOrNo} />
  if (type === 'number') return <TextInput {...input} type="number" step="any" />
  return <TextInput {...input} type={type === 'date' ? 'date' : 'text'} />
}
