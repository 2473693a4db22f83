/** An error of a schema, with the fields that zod adds for each kind. */
export type Issue = {
  readonly message: string
  readonly path?: readonly unknown[] | undefined
  readonly code?: string
  readonly expected?: string
  readonly values?: readonly unknown[]
  readonly format?: string
  /** Type of a value that is too small or too big: `string`, `array`, `number`, … */
  readonly origin?: string
  readonly minimum?: number | bigint
  readonly maximum?: number | bigint
  readonly inclusive?: boolean
  readonly keys?: readonly string[]
  /** Added by custom checks of a schema. `isRule`: the published schema does not state this rule. */
  readonly params?: Readonly<Record<string, unknown>> | undefined
  /** Errors of each member of a union. */
  readonly errors?: readonly (readonly Issue[])[]
}

/** Start of zod's own messages. The messages of the contract begin in lower case. */
const defaultMessage = /^(?:Invalid|Too|Unrecognized)\b/
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
/** The unit of a length, by type. */
const units: Readonly<Record<string, string>> = { string: 'character', array: 'item' }

/** Returns the message to put after the name of a field: that of the contract, or one made from the error of zod. */
export function wordingOf(issue: Issue): string {
  if (isMissing(issue)) return 'is required'
  return defaultMessage.test(issue.message) ? wordingByCode(issue) : issue.message
}

/** Returns true when the value was missing, for every member of a union. */
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
