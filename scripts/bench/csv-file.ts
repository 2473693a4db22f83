import type { World } from './lab.ts'
import type { Tenant } from './seed.ts'

/* A file of people for imports, as a shop would export it. */

const head = 'Email Address,First Name,Last Name,plan,score,since\n'
const plans = ['free', 'pro', 'team']
/** Rows that are made at a time. */
const chunkSize = 2_000

/** The row of person `number`: an address of its own, a name, and a value for each of `properties`. */
function rowOf(number: number): string {
  const day = String(1 + (number % 28)).padStart(2, '0')
  return `reader-${number}@mail-${number % 50}.example,Ada,Lovelace,${plans[number % 3]},${number % 100},2026-02-${day}\n`
}

/** The contact properties that the file has values of. */
const properties = [
  { key: 'plan', type: 'string' },
  { key: 'score', type: 'number' },
  { key: 'since', type: 'date' },
] as const

/** Declares the contact properties that the file has values of. */
export async function declareProperties({ db }: World, { accountId }: Tenant): Promise<void> {
  const at = new Date()
  const declared = properties.map((property) => ({
    ...property,
    account_id: accountId,
    created_at: at,
    updated_at: at,
  }))
  await db.insertInto('contact_properties').values(declared).execute()
}

/** The file with so many people, piece by piece. */
export async function* csvFile(count: number): AsyncGenerator<Buffer> {
  yield Buffer.from(head)
  for (let from = 0; from < count; from += chunkSize) {
    const length = Math.min(chunkSize, count - from)
    yield Buffer.from(Array.from({ length }, (_, index) => rowOf(from + index)).join(''))
  }
}
