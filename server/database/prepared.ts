import { type Compilable, CompiledQuery, type Kysely, type QueryExecutorProvider, type RawBuilder } from 'kysely'

export type Preparation = {
  /** Unique among all statements. */
  name: string
  /**
   * True: it is sent with the next statement of the transaction, or with its `COMMIT`, which fails if this statement
   * does. The call returns at once, without rows. Default: false.
   */
  sendsWithNext?: boolean
  /**
   * True: within a transaction it is sent now, and the call returns at once, without rows: PostgreSQL works on it
   * meanwhile. If it fails, so does the next statement, or the `COMMIT`. Default: false.
   */
  sendsAhead?: boolean
}

/** A prepared statement with its parameters, for the driver. */
export class PreparedQuery<Row> implements CompiledQuery<Row> {
  readonly preparation: Preparation
  readonly query: CompiledQuery['query']
  readonly queryId: CompiledQuery['queryId']
  readonly sql: string
  readonly parameters: readonly unknown[]

  constructor(preparation: Preparation, { query, queryId, sql }: CompiledQuery, parameters: readonly unknown[]) {
    this.preparation = preparation
    this.query = query
    this.queryId = queryId
    this.sql = sql
    this.parameters = parameters
  }
}

/**
 * A statement that is sent after the `COMMIT` of its transaction, in the same flush: it sees everything that others had
 * committed by then. The call within the transaction returns at once, without rows.
 */
export class QueryBehindCommit<Row> implements CompiledQuery<Row> {
  readonly query: CompiledQuery['query']
  readonly queryId: CompiledQuery['queryId']
  readonly sql: string
  readonly name: string
  readonly #parametersNow: () => readonly unknown[]
  /** Called with the rows once the transaction has committed. Null: they could not be read. */
  readonly onRows: (rows: readonly Row[] | null) => void

  constructor(
    { query, queryId, sql }: CompiledQuery,
    options: {
      name: string
      /** Called at the `COMMIT`. */
      parameters: () => readonly unknown[]
      onRows: (rows: readonly Row[] | null) => void
    },
  ) {
    this.query = query
    this.queryId = queryId
    this.sql = sql
    this.name = options.name
    this.#parametersNow = options.parameters
    this.onRows = options.onRows
  }

  get parameters(): readonly unknown[] {
    return this.#parametersNow()
  }
}

type Executor = Pick<Kysely<unknown>, 'executeQuery'>

/** A part of a statement without parameters: names of columns, or what a room publishes for the statements of others. */
export type FixedSql = { readonly sql: string }

/**
 * Creates a statement that PostgreSQL parses and plans once in a session. Otherwise it does so each time, which is half
 * of the cost of a small statement. Use it only where one plan is best for all parameters and all sizes of the tables.
 *
 * Name the columns of a result: with `*`, a migration that adds one would make the statement fail in older processes.
 *
 * @example
 * const rename = prepare<{ id: string; name: string }>({ name: 'rename' })`
 *   UPDATE things SET name = ${'name'} WHERE id = ${'id'}
 * `
 * await rename(trx, { id, name })
 */
export function prepare<Params extends Readonly<Record<string, unknown>>, Row = never>(preparation: Preparation) {
  return (text: TemplateStringsArray, ...slots: ((keyof Params & string) | FixedSql)[]) => {
    const names = [...new Set(slots.filter((slot) => typeof slot === 'string'))]
    const filled = slots.map((slot) => (typeof slot === 'string' ? `$${names.indexOf(slot) + 1}` : slot.sql))
    const statement = CompiledQuery.raw(String.raw(text, ...filled))
    return async (handle: Executor, params: Params): Promise<Row[]> => {
      const values = names.map((name) => params[name])
      const { rows } = await handle.executeQuery<Row>(new PreparedQuery<Row>(preparation, statement, values))
      return rows
    }
  }
}

/** Runs a Kysely statement as a prepared one. Its text must be the same each time; only parameters may differ. */
export async function executePrepared<Row>(
  handle: Executor & QueryExecutorProvider,
  preparation: Preparation,
  statement: Compilable<Row> | RawBuilder<Row>,
): Promise<Row[]> {
  const compiled = 'isRawBuilder' in statement ? statement.compile(handle) : statement.compile()
  const { rows } = await handle.executeQuery<Row>(new PreparedQuery<Row>(preparation, compiled, compiled.parameters))
  return rows
}
