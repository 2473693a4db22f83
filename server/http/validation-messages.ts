/** A fault a schema has found, with what zod tells of each kind. */
export type Issue = {
  readonly message: string
  readonly path?: readonly unknown[] | undefined
  readonly code?: string
  readonly expected?: string
  readonly values?: readonly unknown[]
  readonly format?: string
  /** What is too small or too big: `string`, `array`, `number`, … */
  readonly origin?: string
  readonly minimum?: number | bigint
  readonly maximum?: number | bigint
  readonly inclusive?: boolean
  readonly keys?: readonly string[]
  /** What a schema adds to a fault of its own: `isRule`, that the published schema does not state it. */
  readonly params?: Readonly<Record<string, unknown>> | undefined
  /** What each member of a union has against the value. */
  readonly errors?: readonly (readonly Issue[])[]
}

/** How zod begins where a schema has no words of its own; the contract begins in lower case. */
const wordsOfZod = /^(?:Invalid|Too|Unrecognized)\b/
const missing = /^Invalid input: .*received undefined$/

const nouns: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}
/** What is counted of it. */
const units: Readonly<Record<string, string>> = { string: 'character', array: 'item' }

/** What is wrong, to stand behind the name of a field: the words of the contract, or its like for what it leaves unsaid. */
export function wordingOf(issue: Issue): string {
  if (isMissing(issue)) return 'is required'
  return wordsOfZod.test(issue.message) ? wordingByCode(issue) : issue.message
}

/** Whether there was nothing, whatever it had to be. */
function isMissing({ message, errors = [] }: Issue): boolean {
  const found = errors.flat()
  return missing.test(message) || (found.length > 0 && found.every(isMissing))
}

function wordingByCode(issue: Issue): string {
  const { code, origin = '', minimum, maximum, inclusive, format } = issue
  if (code === 'invalid_type') return typeFault(issue)
  if (code === 'invalid_value') return `must be ${oneOf(issue.values ?? [])}`
  if (code === 'too_small') {
    const verb = Object.hasOwn(units, origin) ? 'have' : 'be'
    return `must ${verb} ${inclusive === false ? 'more than' : 'at least'} ${counted(origin, minimum)}`
  }
  if (code === 'too_big') return `must be ${inclusive === false ? 'less than' : 'at most'} ${counted(origin, maximum)}`
  if (code === 'invalid_format' && format === 'email') return 'must be an email address such as ada@example.com'
  return 'is not valid: /docs says what is taken'
}

function typeFault({ expected = '', message }: Issue): string {
  const [, received = ''] = /received (\w+)$/.exec(message) ?? []
  const given = received === 'boolean' ? 'a boolean' : nouns[received]
  const isTold = given !== undefined && expected !== 'int'
  return `must be ${nouns[expected] ?? expected}${isTold ? `, not ${given}` : ''}`
}

function oneOf(values: readonly unknown[]): string {
  const written = values.map((value) => JSON.stringify(value)).join(', ')
  return values.length === 1 ? written : `one of ${written}`
}

function counted(origin: string, count: number | bigint = 0): string {
  const unit = units[origin]
  return unit === undefined ? String(count) : `${count} ${unit}${Number(count) === 1 ? '' : 's'}`
}
