/** A header field, or one of a report: both are written in the same way. */
export type Header = {
  /** Lower case. */
  name: string
  /** In one line, however it was folded. */
  value: string
  /** Whether an empty line stands in front of it. */
  isAfterBlank: boolean
}

/** Of one list. More than any message needs. */
const maxFields = 1_000
const maxValueLength = 10_000

const field = /^([!-9;-~]{1,100})[ \t]{0,20}:[ \t]*(.*)$/s

/** The value of the first field with this name. */
export function headerOf(headers: readonly Header[], name: string): string | null {
  return headers.find((header) => header.name === name)?.value ?? null
}

/**
 * The headers of a message, and what stands behind them. A line that is no header ends them too, where the
 * empty line is missing.
 */
export function splitHeaders(text: string): { headers: Header[]; body: string } {
  const headers: Header[] = []
  let at = 0
  for (const { line, next } of lines(text)) {
    if (line === '') return { headers, body: text.slice(next) }
    // What a mailbox file puts in front of a message.
    const isEnvelope = at === 0 && /^>?From /.test(line)
    if (!isEnvelope && !addLine(headers, line, false)) return { headers, body: text.slice(at) }
    at = next
  }
  return { headers, body: '' }
}

/** All fields in a text of fields, such as a report. What is none is passed over. */
export function readFields(text: string): Header[] {
  const fields: Header[] = []
  let isAfterBlank = false
  for (const { line } of lines(text)) {
    if (line.trim() === '') isAfterBlank = true
    else if (addLine(fields, line, isAfterBlank)) isAfterBlank = false
    if (fields.length >= maxFields) break
  }
  return fields
}

/** Answers whether the line was one of a field. */
function addLine(fields: Header[], line: string, isAfterBlank: boolean): boolean {
  const last = fields.at(-1)
  if (/^[ \t]/.test(line) && last !== undefined && !isAfterBlank) {
    if (last.value.length < maxValueLength) last.value = `${last.value} ${line.trim()}`.slice(0, maxValueLength)
    return true
  }
  const [, name, value] = field.exec(line) ?? []
  if (name === undefined || value === undefined) return false
  if (fields.length < maxFields) {
    fields.push({ name: name.toLowerCase(), value: value.trim().slice(0, maxValueLength), isAfterBlank })
  }
  return true
}

/** Lines without their ends, and where the next one begins. */
function* lines(text: string): Generator<{ line: string; next: number }> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at)
    const next = end === -1 ? text.length : end + 1
    yield { line: text.slice(at, endOfLine(text, at, end === -1 ? text.length : end)), next }
    at = next
  }
}

/** Where a line ends without the carriage returns behind it. */
function endOfLine(text: string, start: number, lineFeed: number): number {
  let end = lineFeed
  while (end > start && text[end - 1] === '\r') end -= 1
  return end
}
