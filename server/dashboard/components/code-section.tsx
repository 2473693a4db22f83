import { Button } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { IconCheck, IconCopy } from '@tabler/icons-react'
import { type ReactNode, useEffect, useRef } from 'react'
import { CodeBlock } from './code-block.tsx'
import { Section } from './facts.tsx'
import { copiedMs, SelectedNote } from './selected-note.tsx'

type Props = {
  title: string
  code: string
  /** The label of the button: "Copy the code". */
  copyLabel: string
  /** Shown below the code. Default: nothing. */
  children?: ReactNode
}

/** A longer text below a button that copies it. Where the page may not write to the clipboard, the text is selected. */
export function CodeSection({ title, code, copyLabel, children }: Props) {
  const { copied, copy, error } = useClipboard({ timeout: copiedMs })
  const block = useRef<HTMLPreElement>(null)
  useEffect(() => {
    if (error === null || block.current === null) return
    block.current.focus()
    window.getSelection()?.selectAllChildren(block.current)
  }, [error])
  const button = (
    <Button
      size="xs"
      variant="default"
      leftSection={copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
      onClick={() => copy(code)}
    >
      {copied ? 'Copied' : copyLabel}
    </Button>
  )
  return (
    <Section title={title} action={button}>
      {error !== null && <SelectedNote />}
      <CodeBlock ref={block}>{code}</CodeBlock>
      {children}
    </Section>
  )
}
