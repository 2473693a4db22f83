import { parseArgs } from 'node:util'

/** The options of the command line. */
export type Options = {
  /** The benchmarks to run, in this order. Empty: all. */
  names: string[]
  /** Null: the default of the benchmark. */
  rounds: number | null
  seconds: number | null
  size: number
  profileDir: string | null
  json: boolean
  write: boolean
  help: boolean
}

/** A wrong command line. The message is one line. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** Reads the arguments. Throws UsageError. */
export function readOptions(args: readonly string[], known: readonly string[]): Options {
  const { values, positionals } = parse(args)
  const unknown = positionals.filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    throw new UsageError(`there is no benchmark "${unknown.join('", "')}"; there are ${known.join(', ')}`)
  }
  return {
    names: positionals,
    rounds: numberOf('rounds', values.rounds, { min: 1, whole: true }),
    seconds: numberOf('seconds', values.seconds, { min: 0.1 }),
    size: numberOf('size', values.size, { min: 0.0001, max: 1 }) ?? 1,
    profileDir: values.profile ?? null,
    json: values.json,
    write: values.write,
    help: values.help,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        size: { type: 'string' },
        profile: { type: 'string' },
        json: { type: 'boolean', default: false },
        write: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error })
  }
}

type Bounds = { min: number; max?: number; whole?: boolean }

function numberOf(name: string, text: string | undefined, { min, max, whole = false }: Bounds): number | null {
  if (text === undefined) return null
  const value = Number(text)
  const isFine = value >= min && value <= (max ?? Number.MAX_VALUE) && (!whole || Number.isInteger(value))
  if (text.trim() !== '' && isFine) return value
  const upTo = max === undefined ? '' : ` and at most ${max}`
  throw new UsageError(`--${name} is "${text}", but must be a ${whole ? 'whole ' : ''}number of at least ${min}${upTo}`)
}
