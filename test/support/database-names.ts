import { randomBytes } from 'node:crypto'
import type pg from 'pg'

/*
 * Several runs may share one server. The databases of a run begin with a prefix of its own, and the
 * run holds an advisory lock named by that prefix as long as it lives: what begins with a prefix
 * that nobody holds was left behind by a run that was killed.
 */

const common = 'postern_test_'
const pattern = new RegExp(`^${common}[0-9a-f]{8}(?=_)`)

/** A prefix for the databases of this run, held until `client` ends. */
export async function holdPrefix(client: pg.Client): Promise<string> {
  const prefix = `${common}${randomBytes(4).toString('hex')}`
  await client.query('SELECT pg_advisory_lock(hashtext($1))', [prefix])
  return prefix
}

/** Drops what runs that no longer live have left behind. Answers the names. */
export async function dropLeftovers(client: pg.Client): Promise<string[]> {
  const dropped: string[] = []
  for (const [prefix, names] of Map.groupBy(await listDatabases(client, common), (name) => pattern.exec(name)?.[0])) {
    if (prefix === undefined) continue
    const { rows } = await client.query<{ free: boolean }>('SELECT pg_try_advisory_lock(hashtext($1)) AS free', [
      prefix,
    ])
    if (!rows[0]?.free) continue
    for (const name of names) await dropDatabase(client, name)
    dropped.push(...names)
    await client.query('SELECT pg_advisory_unlock(hashtext($1))', [prefix])
  }
  return dropped
}

/** The names of all databases that begin with `prefix`. */
export async function listDatabases(client: pg.Client, prefix: string): Promise<string[]> {
  const { rows } = await client.query<{ datname: string }>(
    'SELECT datname FROM pg_database WHERE starts_with(datname, $1) ORDER BY datname',
    [prefix],
  )
  return rows.map((row) => row.datname)
}

/** Drops a database whoever is connected to it. `name` is one of ours: nothing in it needs quoting. */
export async function dropDatabase(client: pg.Client, name: string): Promise<void> {
  await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
}
