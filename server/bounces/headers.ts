/** A header field of a message, or a field of a report, which has the same syntax. */
export type Header = {
  /** Lower case. */
  name: string
  /** The unfolded value, on one line. */
  value: string
  /** True when an empty line precedes the field. */
  isAfterBlank: boolean
}

/** Maximum fields of one list. More than any message needs. */
const maxFields = 1_000
const maxValueLength = 10_000

const field = /^([!-9;-~]{1,100})[ \t]{0,20}:[ \t]*(.*)$/s

/** Returns the value of the first field with this name; null: there is none. */
export function headerOf(headers: readonly Header[], name: string): string | null {
  return headers.find((header) => header.name === name)?.value ?? null
}

/**
 * Splits a message into its headers and its body. If the empty line is missing, the first line that is not a header
 * begins the body.
 */
export function splitHeaders(text: string): { headers: Header[]; body: string } {
  const headers: Header[] = []
  let at = 0
  for (const { line, next } of lines(text)) {
    if (line === '') return { headers, body: text.slice(next) }
    // The separator line of a message in an mbox file.
    const isEnvelope = at === 0 && /^>?From /.test(line)
    if (!isEnvelope && !addLine(headers, line, false)) return { headers, body: text.slice(at) }
    at = next
  }
  return { headers, body: '' }
}

/** Parses all fields in a text such as a report. Other lines are ignored. */
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

/** Adds a line to the fields. Returns false if it is not part of a field. */
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

/** Yields the lines without their line ends, each with the offset of the next one. */
function* lines(text: string): Generator<{ line: string; next: number }> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at)
    const next = end === -1 ? text.length : end + 1
    yield { line: text.slice(at, endOfLine(text, at, end === -1 ? text.length : end)), next }
    at = next
  }
}

/** Returns the end of a line without the carriage returns before its line feed. */
function endOfLine(text: string, start: number, lineFeed: number): number {
  let end = lineFeed
  while (end > start && text[end - 1] === '\r') end -= 1
  return end
}
