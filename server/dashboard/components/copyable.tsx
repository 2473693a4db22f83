import '../styles/copyable.css'
import { Tooltip, UnstyledButton } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { IconCheck, IconCopy } from '@tabler/icons-react'
import { useEffect, useRef } from 'react'
import { copiedMs, SelectedNote } from './selected-note.tsx'

type Props = {
  value: string
  /** The label for screen readers: "Copy the key". */
  label: string
  /** Breaks a long value into lines. Default: it is cut. */
  wraps?: boolean
  /** Takes the focus when it is shown. Default: it does not. */
  autoFocus?: boolean
}

/** A value in a monospaced face, copied by a click. Where the page may not write to the clipboard, it is selected. */
export function Copyable({ value, label, wraps = false, autoFocus = false }: Props) {
  const { copied, copy, error } = useClipboard({ timeout: copiedMs })
  if (error !== null) return <Selected value={value} label={label} wraps={wraps} />
  return (
    <Tooltip label={copied ? 'Copied' : 'Copy'} openDelay={300}>
      <UnstyledButton
        className={wraps ? 'copyable wraps' : 'copyable'}
        autoFocus={autoFocus}
        onClick={() => copy(value)}
        aria-label={`${label}: ${value}`}
      >
        <span>{value}</span>
        {copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
        <output className="visually-hidden">{copied ? 'Copied' : ''}</output>
      </UnstyledButton>
    </Tooltip>
  )
}

/** A field, since its text can be selected by touch, pointer and keyboard. */
function Selected({ value, label, wraps }: Required<Omit<Props, 'autoFocus'>>) {
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null)
  useEffect(() => field.current?.focus(), [])
  const Field = wraps ? 'textarea' : 'input'
  return (
    <>
      <Field
        ref={field}
        className={wraps ? 'copyable selected wraps' : 'copyable selected'}
        aria-label={label}
        readOnly
        value={value}
        onFocus={(event) => event.currentTarget.select()}
      />
      <SelectedNote />
    </>
  )
}
