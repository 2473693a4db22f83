import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  type TransactionSettings,
} from 'kysely'
import type pg from 'pg'
import { type Preparation, PreparedQuery, QueryBehindCommit } from './prepared.ts'
import { execute } from './prepared-execution.ts'

/*
 * A Kysely driver on `pg` with few round trips: a round trip costs both sides more than a small statement. A statement
 * whose result is not needed is sent with the next statement, as `BEGIN` always is, or at once without waiting for the
 * response.
 */

/** Creates the dialect. Kysely's `destroy` closes `pool`, which must be in pipeline mode. */
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
    // The pool connects on demand.
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

type Statement = { text: string; values?: unknown[]; name?: string | undefined }

/** `command` is known of statements that are not prepared. */
type Result = Pick<pg.QueryResult, 'rows' | 'rowCount'> & { command?: string }

const notPrepared: Partial<Preparation> = {}

class Connection implements DatabaseConnection {
  readonly #client: pg.PoolClient
  /** `waiting`: its `BEGIN` is sent with the first statement. */
  #transaction: 'none' | 'waiting' | 'begun' = 'none'
  /** Statements to send with the next one. */
  #waiting: Statement[] = []
  /** The responses to statements that were sent ahead. */
  #ahead: Promise<unknown>[] = []
  /** Queries to send after the `COMMIT`, in the same flush. */
  #behind: QueryBehindCommit<never>[] = []
  #isBroken = false

  constructor(client: pg.PoolClient) {
    this.#client = client
  }

  begin({ isolationLevel, accessMode }: TransactionSettings): void {
    const level = isolationLevel === undefined ? [] : [`ISOLATION LEVEL ${isolationLevel}`]
    const text = ['BEGIN', ...level, ...(accessMode === undefined ? [] : [accessMode])].join(' ')
    this.#waiting = [{ text }]
    this.#ahead = []
    this.#behind = []
    this.#transaction = 'waiting'
  }

  async commit(): Promise<void> {
    const { stream } = this.#client.connection
    stream.cork()
    const ending = Promise.all([this.#end('COMMIT'), this.#sendBehind()])
    stream.uncork()
    const [command, behind] = await ending
    // PostgreSQL responds ROLLBACK to the COMMIT of a transaction in which a statement failed.
    if (command === 'ROLLBACK') throw new Error('nothing was committed, since a statement of the transaction failed')
    for (const { query, rows } of behind) query.onRows(rows)
  }

  /** Does not reject, so that its caller gets the error that led to it. A connection on which it fails is closed. */
  async rollback(): Promise<void> {
    this.#waiting = []
    this.#ahead = []
    await this.#end('ROLLBACK').catch(() => {
      this.#isBroken = true
    })
  }

  release(): void {
    this.#client.release(this.#isBroken)
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (query instanceof QueryBehindCommit) {
      this.#behind.push(query)
      return { rows: [] }
    }
    const { name, sendsWithNext, sendsAhead } = query instanceof PreparedQuery ? query.preparation : notPrepared
    const statement = { text: query.sql, values: [...query.parameters], name }
    if ((sendsWithNext || sendsAhead) && this.#transaction !== 'none') {
      this.#waiting.push(statement)
      if (sendsAhead) this.#sendAhead()
      return { rows: [] }
    }
    const { rows, rowCount } = await this.#send(statement)
    return { rows, numAffectedRows: BigInt(rowCount ?? 0) }
  }

  // biome-ignore lint/correctness/useYield: there is nothing to yield.
  async *streamQuery(): AsyncGenerator<never> {
    throw new Error('rows are read in pages, not as a stream')
  }

  async #end(text: 'COMMIT' | 'ROLLBACK'): Promise<string | undefined> {
    const isUntouched = this.#transaction === 'waiting' && this.#waiting.length <= 1
    this.#transaction = 'none'
    if (isUntouched) {
      this.#waiting = []
      return undefined
    }
    const { command } = await this.#send({ text })
    return command
  }

  /** Sends the queries that follow the `COMMIT`. Call it right after sending that, before its response. */
  #sendBehind(): Promise<{ query: QueryBehindCommit<never>; rows: never[] | null }[]> {
    return Promise.all(
      this.#behind.splice(0).map(async (query) => {
        const { sql: text, name, parameters: values } = query
        const answer = await execute(this.#client, { name, text, values }).catch(() => null)
        return { query, rows: (answer?.rows as never[] | undefined) ?? null }
      }),
    )
  }

  /** Sends the waiting statements. */
  #sendAhead(): void {
    const { stream } = this.#client.connection
    stream.cork()
    const responses = this.#runWaiting()
    stream.uncork()
    // The next statement, or the `COMMIT`, rejects with the error.
    for (const response of responses) response.catch(() => undefined)
    this.#ahead.push(...responses)
  }

  /**
   * Sends the waiting statements and `statement` in one flush. Returns the result of `statement`. Rejects if any fails,
   * or one that was sent ahead.
   */
  async #send(statement: Statement): Promise<Result> {
    if (this.#waiting.length + this.#ahead.length === 0) return this.#run(statement)
    const { stream } = this.#client.connection
    stream.cork()
    const earlier = Promise.all([...this.#ahead.splice(0), ...this.#runWaiting()])
    const result = this.#run(statement)
    stream.uncork()
    // When an earlier one fails, this one fails because of it, and its error says nothing.
    result.catch(() => undefined)
    await earlier
    return result
  }

  #runWaiting(): Promise<Result>[] {
    if (this.#transaction === 'waiting' && this.#waiting.length > 0) this.#transaction = 'begun'
    return this.#waiting.splice(0).map((one) => this.#run(one))
  }

  #run({ text, values = [], name }: Statement): Promise<Result> {
    return name === undefined ? this.#client.query(text, values) : execute(this.#client, { name, text, values })
  }
}
