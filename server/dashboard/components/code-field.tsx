import '../styles/editor.css'
import { Input, UnstyledButton } from '@mantine/core'
import { type ReactNode, useId, useRef } from 'react'

/** Pixels from one line to the next: that of `.code-field` in editor.css. */
const lineHeight = 18

export type CodeFault = {
  /** From 1. Null: it is not in one line. */
  line: number | null
  message: string
}

type Props = {
  label: string
  description?: string
  value: string
  onChange: (value: string) => void
  /** Why the value is refused. */
  error?: ReactNode
  /** Errors in the value. Default: none. */
  faults?: readonly CodeFault[]
  isReadOnly?: boolean
  /** Lines that are in sight. */
  rows: number
}

/** Text in a monospaced face with numbered lines, which are never broken. Faults stand below it and lead to their line. */
export function CodeField({ label, description, value, onChange, error, faults = [], isReadOnly, rows }: Props) {
  const id = useId()
  const field = useRef<HTMLTextAreaElement>(null)
  const numbers = useRef<HTMLDivElement>(null)
  const count = value.split('\n').length
  const bad = new Set(faults.map(({ line }) => line))

  function show(line: number): void {
    const { current } = field
    if (current === null) return
    const lines = value.split('\n')
    const start = lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0)
    current.focus()
    current.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0))
    current.scrollTop = Math.max(0, (line - 3) * lineHeight)
  }

  const described = [
    description !== undefined && `${id}-description`,
    error != null && `${id}-error`,
    faults.length > 0 && `${id}-faults`,
  ].filter((one) => one !== false)
  return (
    <div>
      <Input.Wrapper id={id} label={label} description={description} error={error ?? null}>
        <div className="code-field" data-bad={faults.length > 0 || error != null}>
          <div className="code-lines" aria-hidden="true">
            <div ref={numbers}>
              {Array.from({ length: count }, (_, index) => index + 1).join('\n')}
              {[...bad].map(
                (line) =>
                  line !== null &&
                  line <= count && (
                    <span key={line} className="code-mark" style={{ top: `${(line - 1) * lineHeight}px` }}>
                      {line}
                    </span>
                  ),
              )}
            </div>
          </div>
          <textarea
            id={id}
            ref={field}
            rows={rows}
            wrap="off"
            spellCheck={false}
            autoCapitalize="off"
            value={value}
            readOnly={isReadOnly}
            aria-invalid={faults.length > 0 || error != null}
            {...(described.length > 0 && { 'aria-describedby': described.join(' ') })}
            onChange={(event) => onChange(event.currentTarget.value)}
            onScroll={(event) => {
              if (numbers.current) numbers.current.style.transform = `translateY(${-event.currentTarget.scrollTop}px)`
            }}
          />
        </div>
      </Input.Wrapper>
      {faults.length > 0 && (
        <ul id={`${id}-faults`} className="code-faults">
          {faults.map(({ line, message }) => (
            <li key={`${line} ${message}`}>
              {line !== null && (
                <UnstyledButton className="code-line" onClick={() => show(line)}>
                  Line {line}
                </UnstyledButton>
              )}
              <span>{message}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
