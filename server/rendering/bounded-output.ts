import { type Emitter, toValue } from 'liquidjs'
import { type PartName, TemplateFault } from './template-faults.ts'

/** Collects the output of Liquid, up to a length. */
export class BoundedOutput implements Emitter {
  buffer = ''
  readonly #part: PartName
  readonly #maxLength: number
  /** Where the preheader goes. */
  #place = 0

  constructor(part: PartName, maxLength: number) {
    this.#part = part
    this.#maxLength = maxLength
  }

  write(value: unknown): void {
    const text = typeof value === 'string' ? value : textOf(value, this.#maxLength)
    if (this.buffer.length + text.length > this.#maxLength) {
      throw new TemplateFault(`The ${this.#part} becomes longer than ${this.#maxLength} characters.`)
    }
    this.buffer += text
  }

  /** Remembers that the preheader goes here. */
  markPlace(): void {
    this.#place = this.buffer.length
  }

  /** Returns the output with `html` at the marked place. */
  with(html: string): string {
    return this.buffer.slice(0, this.#place) + html + this.buffer.slice(this.#place)
  }
}

/** As Liquid writes values: lists without separators, and nothing for no value. Stops beyond `maxLength`. */
function textOf(value: unknown, maxLength: number): string {
  const read = toValue(value)
  if (typeof read === 'string') return read
  if (read === null || read === undefined) return ''
  if (!Array.isArray(read)) return String(read)
  let text = ''
  for (const entry of read) {
    text += textOf(entry, maxLength)
    if (text.length > maxLength) break
  }
  return text
}
