import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  type RawBuilder,
  sql,
  type Transaction,
  type TransactionSettings,
} from 'kysely'
import type pg from 'pg'

/*
 * Kysely on `pg`, for transactions that wait little: each round trip costs both sides more than the work
 * of a small statement does. So what needs no answer of its own is sent with the statement after it,
 * `BEGIN` first of all, and PostgreSQL parses and plans once in a session what has a name.
 */

export type Preparation = {
  /** No other statement has it. */
  name: string
  /**
   * Sends it with the next statement of the transaction, or with its `COMMIT`, which fails if this does.
   * It answers at once, without rows. Default: false.
   */
  sendsWithNext?: boolean
}

const preparation = /^\/\* prepared: (?<name>\w+)(?<sendsWithNext>, sent with the next)? \*\//

/**
 * Has a statement parsed and planned once in each session, where else it is each time. Only for text that
 * is always the same under its name, and for which one plan is best whatever its parameters and however
 * large its tables.
 */
export function prepared<T>({ name, sendsWithNext = false }: Preparation, statement: RawBuilder<T>): RawBuilder<T> {
  // Kysely has no other way to tell its driver.
  return sql<T>`${sql.raw(`/* prepared: ${name}${sendsWithNext ? ', sent with the next' : ''} */`)} ${statement}`
}

const nothing = '/* nothing */'

/** Has the database begun a transaction, which else it does with the first statement. Resolves when it has. */
export async function hasBegun<T>(trx: Transaction<T>): Promise<void> {
  await sql.raw(nothing).execute(trx)
}

/** Kysely's `destroy` closes `pool`, which must be in pipeline mode. */
export function createDialect(pool: pg.Pool): Dialect {
  return {
    createDriver: () => new PoolDriver(pool),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (db) => new PostgresIntrospector(db),
  }
}

class PoolDriver implements Driver {
  readonly #pool: pg.Pool

  constructor(pool: pg.Pool) {
    this.#pool = pool
  }

  async init(): Promise<void> {
    // The pool connects when it is asked.
  }

  async acquireConnection(): Promise<Connection> {
    return new Connection(await this.#pool.connect())
  }

  async beginTransaction(connection: Connection, settings: TransactionSettings): Promise<void> {
    connection.begin(settings)
  }

  commitTransaction(connection: Connection): Promise<void> {
    return connection.commit()
  }

  rollbackTransaction(connection: Connection): Promise<void> {
    return connection.rollback()
  }

  async releaseConnection(connection: Connection): Promise<void> {
    connection.release()
  }

  destroy(): Promise<void> {
    return this.#pool.end()
  }
}

type Statement = { text: string; values: unknown[]; name?: string }

class Connection implements DatabaseConnection {
  readonly #client: pg.PoolClient
  /** Before the first statement, its `BEGIN` waits. */
  #transaction: 'none' | 'waiting' | 'begun' = 'none'
  /** What is sent with the next statement. */
  #waiting: Statement[] = []

  constructor(client: pg.PoolClient) {
    this.#client = client
  }

  begin({ isolationLevel, accessMode }: TransactionSettings): void {
    const level = isolationLevel === undefined ? [] : [`ISOLATION LEVEL ${isolationLevel}`]
    const text = ['BEGIN', ...level, ...(accessMode === undefined ? [] : [accessMode])].join(' ')
    this.#waiting = [{ text, values: [] }]
    this.#transaction = 'waiting'
  }

  async commit(): Promise<void> {
    const command = await this.#end('COMMIT')
    // As PostgreSQL ends a transaction in which a statement failed.
    if (command === 'ROLLBACK') throw new Error('nothing was committed, since a statement of the transaction failed')
  }

  async rollback(): Promise<void> {
    this.#waiting = []
    await this.#end('ROLLBACK')
  }

  release(): void {
    this.#client.release()
  }

  async executeQuery<R>({ sql: text, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    if (text === nothing) {
      if (this.#transaction === 'waiting') await this.#send([])
      return { rows: [] }
    }
    const { name, sendsWithNext } = preparation.exec(text)?.groups ?? {}
    const statement = { text, values: [...parameters], ...(name === undefined ? {} : { name }) }
    if (sendsWithNext !== undefined && this.#transaction !== 'none') {
      this.#waiting.push(statement)
      return { rows: [] }
    }
    const answer = await this.#send([statement])
    return { rows: answer?.rows ?? [], numAffectedRows: BigInt(answer?.rowCount ?? 0) }
  }

  // biome-ignore lint/correctness/useYield: there is nothing to yield.
  async *streamQuery(): AsyncGenerator<never> {
    throw new Error('rows are read in pages, not as a stream')
  }

  async #end(text: 'COMMIT' | 'ROLLBACK'): Promise<string | undefined> {
    const isUntouched = this.#transaction === 'waiting' && this.#waiting.length <= 1
    this.#transaction = 'none'
    if (isUntouched) return undefined
    const answer = await this.#send([{ text, values: [] }])
    return answer?.command
  }

  /** Sends what waits and `statements`, at once, and answers the answer of the last. Rejects when any of them fails. */
  async #send(statements: readonly Statement[]): Promise<pg.QueryResult | undefined> {
    const all = [...this.#waiting, ...statements]
    this.#waiting = []
    if (this.#transaction === 'waiting') this.#transaction = 'begun'
    const { stream } = this.#client.connection
    stream.cork()
    const sent = all.map((statement) => this.#client.query(statement))
    stream.uncork()
    return (await Promise.all(sent)).at(-1)
  }
}
