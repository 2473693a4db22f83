import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { withDatabase } from '../support/database-url.ts'
import { type Postgres, startPostgres } from './support/postgres.ts'
import { rounds, within } from './support/rounds.ts'
import { connectTester } from './support/sessions.ts'
import { mountSmallDisk, type SmallDisk, whyNoSmallDisk } from './support/small-disk.ts'
import { type Stage, setStage } from './support/stage.ts'

/*
 * The data of the database lies on a disk of its own that has no room left. Its log lies elsewhere:
 * where that is full too, PostgreSQL ends, as in postgres-killed.test.ts.
 */

const reason = await whyNoSmallDisk()
/** Enough for an empty database with the schema, twice. */
const megabytes = 48
/** The SQLSTATE. */
const diskFull = '53100'
const times = rounds({ short: 1, long: 5 })

describe.skipIf(reason !== null)(`a full disk${reason === null ? '' : ` (not here: ${reason})`}`, () => {
  let postgres: Postgres
  let disk: SmallDisk
  let stage: Stage

  beforeEach(async () => {
    postgres = await startPostgres()
    disk = await mountSmallDisk({ mountPoint: `${postgres.directory}/small-disk`, uid: postgres.uid, megabytes })
    const admin = connectTester(postgres.connectionString)
    await sql`CREATE TABLESPACE small LOCATION ${sql.lit(disk.directory)}`.execute(admin)
    await sql`CREATE DATABASE small TABLESPACE small`.execute(admin)
    await admin.destroy()
    stage = await setStage({ connectionString: withDatabase(postgres.connectionString, 'small') })
  })
  afterEach(async () => {
    await stage[Symbol.asyncDispose]()
    await postgres.stop()
    await disk[Symbol.asyncDispose]()
    await postgres[Symbol.asyncDispose]()
  })

  const writeMuch = () => sql`CREATE TABLE much AS SELECT generate_series(1, 100000)`.execute(stage.db)

  test(`a full disk is answered with 503 and loses nothing (${times} times)`, within(times), async () => {
    await using load = stage.startLoad()
    for (let time = 1; time <= times; time++) {
      await load.acknowledged(20)
      await disk.fill()
      await load.refused(20)
      await expect(writeMuch()).rejects.toMatchObject({ code: diskFull })
      await disk.clear()
    }
    await load.acknowledged(20)
    await load.stop()
    expect(await stage.verdict()).toEqual([])
  })
})
