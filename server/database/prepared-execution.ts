import pg from 'pg'

/*
 * `pg` asks for the description of the columns with each execution of a prepared statement, which costs both sides more
 * than a small row does. Here a connection asks for it once. The description stays true: PostgreSQL refuses to execute a
 * prepared statement whose columns have changed ("cached plan must not change result type").
 */

/** A prepared statement with its parameters. */
export type Execution = { name: string; text: string; values: readonly unknown[] }

type Result = Pick<pg.QueryResult, 'rows' | 'rowCount'>
type Callback = (error: unknown, result?: Result) => void

/** Writes a parameter as `pg` does. */
const { prepareValue } = (pg as unknown as { utils: { prepareValue: (value: unknown) => unknown } }).utils

/** Sends a prepared statement at once and returns its result. PostgreSQL parses it if the connection is new to it. */
export async function execute(client: pg.Client, { name, text, values }: Execution): Promise<Result> {
  try {
    return await new Promise<Result>((resolve, reject) => {
      const callback: Callback = (error, result) => (result === undefined ? reject(error) : resolve(result))
      client.query(new SentExecution({ name, text, values: values.map(prepareValue) }, callback))
    })
  } catch (error) {
    // The stack of an error of PostgreSQL leads to the socket. This one leads to the caller, as with `pg`.
    if (error instanceof Error) Error.captureStackTrace(error)
    throw error
  }
}

type Column = { name: string; parse: (text: string) => unknown }

/** The columns of the statements that a connection has executed, by the names of the statements. */
const columnsOf = new WeakMap<pg.Connection, Map<string, readonly Column[]>>()

function knownColumns(connection: pg.Connection): Map<string, readonly Column[]> {
  const known = columnsOf.get(connection) ?? new Map<string, readonly Column[]>()
  columnsOf.set(connection, known)
  return known
}

/** A connection of `pg`, as its own `Query` uses it. */
type Connection = pg.Connection & {
  /** Texts of statements by name: of those that PostgreSQL has parsed, and of those that were sent to it. */
  readonly parsedStatements: Record<string, string>
  readonly submittedNamedStatements: Record<string, string>
  parse(message: { name: string; text: string }): void
  bind(message: { statement: string; values: readonly unknown[] }): void
  describe(message: { type: 'P' }): void
  execute(message: object): void
}

/** Sends the messages of an execution and takes their responses: the part of `Query` of `pg` that it needs. */
class SentExecution implements pg.Submittable {
  /** With these two, `pg` notes that PostgreSQL has parsed the statement, or has not. */
  readonly name: string
  readonly text: string
  /** Called once. With `query_timeout`, `pg` puts one in its place that ends its timer. */
  callback: Callback
  readonly #values: readonly unknown[]
  #columns: readonly Column[] | undefined
  readonly #rows: Record<string, unknown>[] = []
  #rowCount = 0
  #fault: { error: unknown } | null = null

  constructor({ name, text, values }: Execution, callback: Callback) {
    this.name = name
    this.text = text
    this.#values = values
    this.callback = callback
  }

  /** Returns an error when nothing can be sent. */
  submit(given: pg.Connection): Error | null {
    const connection = given as Connection
    const { name, text } = this
    const sent = connection.parsedStatements[name] ?? connection.submittedNamedStatements[name]
    if (sent !== undefined && sent !== text) return new Error(`two prepared statements have the name "${name}"`)
    this.#columns = knownColumns(connection).get(name)
    connection.stream.cork()
    try {
      if (sent === undefined) {
        connection.parse({ name, text })
        connection.submittedNamedStatements[name] = text
      }
      connection.bind({ statement: name, values: this.#values })
      if (this.#columns === undefined) connection.describe({ type: 'P' })
      connection.execute({})
      connection.sync()
    } finally {
      connection.stream.uncork()
    }
    return null
  }

  handleRowDescription({ fields }: { fields: readonly pg.FieldDef[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, parse: pg.types.getTypeParser(dataTypeID) }))
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    try {
      this.#rows.push(rowOf(this.#columns ?? [], fields))
    } catch (error) {
      this.#fault ??= { error }
    }
  }

  handleCommandComplete({ text }: { text: string }, connection: pg.Connection): void {
    // A statement that returns nothing has no description. The count is at the end: "INSERT 0 1".
    knownColumns(connection).set(this.name, this.#columns ?? [])
    this.#rowCount = Number(text.slice(text.lastIndexOf(' ') + 1)) || 0
  }

  handleEmptyQuery(): void {
    // A statement without text has no rows.
  }

  handleReadyForQuery(): void {
    if (this.#fault === null) this.callback(null, { rows: this.#rows, rowCount: this.#rowCount })
    else this.callback(this.#fault.error)
  }

  handleError(error: unknown): void {
    this.callback(error)
  }
}

function rowOf(columns: readonly Column[], values: readonly (string | null)[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (let index = 0; index < columns.length; index++) {
    const { name, parse } = columns[index] as Column
    const value = values[index] ?? null
    row[name] = value === null ? null : parse(value)
  }
  return row
}
