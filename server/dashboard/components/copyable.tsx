import { CopyButton, Tooltip, UnstyledButton } from '@mantine/core'
import { IconCheck, IconCopy } from '@tabler/icons-react'

type Props = {
  value: string
  /** What it is, for screen readers: "Copy the key". */
  label: string
  /** Breaks a long value into lines. Default: it is cut. */
  wraps?: boolean
}

/** A value in a monospaced face, copied by a click. */
export function Copyable({ value, label, wraps = false }: Props) {
  return (
    <CopyButton value={value} timeout={1500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : 'Copy'} openDelay={300}>
          <UnstyledButton
            className={wraps ? 'copyable wraps' : 'copyable'}
            onClick={copy}
            aria-label={`${label}: ${value}`}
          >
            <span>{value}</span>
            {copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
            <output className="visually-hidden">{copied ? 'Copied' : ''}</output>
          </UnstyledButton>
        </Tooltip>
      )}
    </CopyButton>
  )
}
