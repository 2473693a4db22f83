import { LiquidError } from 'liquidjs'
import { renderingLimits } from './limits.ts'

/** A fault of a template, or of a rendering of it. The message is for people. */
export class TemplateFault extends Error {
  override name = 'TemplateFault'
}

/** The parts of a message, as they are called in reasons. */
export type PartName = 'subject' | 'preheader' | 'HTML' | 'text' | 'MJML'

/** Runs `work` on a part. Throws TemplateFault with the reason, and the line and column where it failed. */
export function attempt<Result>(part: PartName, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw new TemplateFault(faultOf(part, error), { cause: error })
  }
}

function faultOf(part: PartName, error: unknown): string {
  if (error instanceof TemplateFault) return error.message
  if (error instanceof RangeError) {
    return /call stack/i.test(error.message)
      ? `The ${part} nests too deep: nest fewer tags.`
      : `The ${part} makes a text that is too long: make less of it.`
  }
  if (!LiquidError.is(error)) return `The ${part} cannot be rendered: ${plainly(messageOf(error))}`
  const [line, column] = error.token.getPosition()
  const where = `line ${line}, column ${column}`
  const original = error.originalError
  if (original instanceof TemplateFault || original instanceof RangeError) {
    return `${faultOf(part, original)} This is at ${where}.`
  }
  const message = messageOf(original ?? error).replace(/, (file|line):.*$/s, '')
  return `The ${part}, ${where}: ${plainly(message)}`
}

/** Returns what is wrong, in one line of at most 300 characters. */
export function reasonOf(error: unknown): string {
  const line = oneLine(messageOf(error))
  return line.length <= renderingLimits.reasonLength ? line : `${line.slice(0, renderingLimits.reasonLength - 1)}…`
}

/** Messages of Liquid about its limits, in words that say what to do. */
const plain: Readonly<Record<string, string>> = {
  'memory alloc limit exceeded': 'this makes more data than a message may; loop over less.',
  'template render limit exceeded': `rendering takes more than ${renderingLimits.renderMs} ms; loop over less.`,
}

function plainly(message: string): string {
  return plain[message] ?? message
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown fault'
}

/** Replaces line breaks, other control characters and white space in a row by one space. */
export function oneLine(text: string): string {
  return text.replace(lineBreaks, ' ').trim()
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
const lineBreaks = /[\s\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g
