/** The processes that run. A process that was killed leaves its row, which is deleted after a day. */
export type ProcessesTable = {
  /** Of this start of the process. */
  id: string
  /** The name of its machine or container. */
  host: string
  pid: number
  roles: ('api' | 'worker')[]
  version: string
  node: string
  started_at: Date
  /** When it last told that it runs, by the clock of the database. */
  seen_at: Date
}
