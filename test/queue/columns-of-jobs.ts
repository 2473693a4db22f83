import { sql } from 'kysely'
import type { Db } from '../../server/database/connection.ts'

/** Returns the columns of each job of pg-boss, by its id. Times become `a time`: those of two jobs differ. */
export async function columnsOfJobs(db: Db): Promise<Map<string, Record<string, unknown>>> {
  const { rows } = await sql<{ job: Record<string, unknown>; untilKept: number }>`
    SELECT to_jsonb(job) AS job, EXTRACT(EPOCH FROM keep_until - created_on)::int AS "untilKept" FROM pgboss.job
  `.execute(db)
  const isTime = (value: unknown) => typeof value === 'string' && !Number.isNaN(Date.parse(value))
  return new Map(
    rows.map(({ job: { id, ...job }, untilKept }) => {
      const columns = Object.entries(job).map(([name, value]) => [name, isTime(value) ? 'a time' : value])
      return [String(id), { ...Object.fromEntries(columns), untilKept }]
    }),
  )
}
