import { type Compilable, CompiledQuery, type Kysely, type QueryExecutorProvider, type RawBuilder } from 'kysely'

export type Preparation = {
  /** No other statement has it. */
  name: string
  /**
   * Sends it with the next statement of the transaction, or with its `COMMIT`, which fails if this does.
   * It answers at once, without rows. Default: false.
   */
  sendsWithNext?: boolean
}

/** A statement with its parameters, for the driver. */
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
 * A statement that is sent behind the `COMMIT` of its transaction, in the same flush: it sees what others had committed
 * by then. Within the transaction it is answered at once, without rows.
 */
export class QueryBehindCommit<Row> implements CompiledQuery<Row> {
  readonly query: CompiledQuery['query']
  readonly queryId: CompiledQuery['queryId']
  readonly sql: string
  readonly name: string
  readonly #parametersNow: () => readonly unknown[]
  /** Told of the rows once the transaction has committed; null: they could not be read. */
  readonly onRows: (rows: readonly Row[] | null) => void

  constructor(
    { query, queryId, sql }: CompiledQuery,
    options: {
      name: string
      /** Asked at the `COMMIT`. */
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

/**
 * A statement that PostgreSQL parses and plans once in a session, where else it does each time; that is
 * half of what a small one costs. Only where one plan is best whatever the parameters are and however
 * large the tables.
 *
 * @example
 * const rename = prepare<{ id: string; name: string }>({ name: 'rename' })`
 *   UPDATE things SET name = ${'name'} WHERE id = ${'id'}
 * `
 * await rename(trx, { id, name })
 */
export function prepare<Params extends Readonly<Record<string, unknown>>, Row = never>(preparation: Preparation) {
  return (text: TemplateStringsArray, ...slots: (keyof Params & string)[]) => {
    const names = [...new Set(slots)]
    const statement = CompiledQuery.raw(String.raw(text, ...slots.map((slot) => `$${names.indexOf(slot) + 1}`)))
    return async (handle: Executor, params: Params): Promise<Row[]> => {
      const values = names.map((name) => params[name])
      const { rows } = await handle.executeQuery<Row>(new PreparedQuery<Row>(preparation, statement, values))
      return rows
    }
  }
}

/** The same for a statement of Kysely's, which must be the same each time but for its parameters. */
export async function executePrepared<Row>(
  handle: Executor & QueryExecutorProvider,
  preparation: Preparation,
  statement: Compilable<Row> | RawBuilder<Row>,
): Promise<Row[]> {
  const compiled = 'isRawBuilder' in statement ? statement.compile(handle) : statement.compile()
  const { rows } = await handle.executeQuery<Row>(new PreparedQuery<Row>(preparation, compiled, compiled.parameters))
  return rows
}
