import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { newId } from '../../server/shared/ids.ts'
import { live } from '../support/scope.ts'
import { createImportWorld } from '../support/worlds/imports.ts'
import { csvFile, zipOf } from '../support/zip.ts'

test('an account with one import waits for one turn of an account with five', async () => {
  const world = await createImportWorld()
  await using _ = { [Symbol.asyncDispose]: () => world.end() }
  const { db, stranger, audiences, imports, upload, scopeOf, startWorker, ended } = world
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.push((await upload(`email\na${n}@example.com\n`)).id)
  const { id: audienceId } = await audiences.create(db, live(stranger), { name: 'Theirs' })
  async function* file() {
    yield Buffer.from('email\nb@example.com\n')
  }
  await imports.create(db, scopeOf('live', stranger), { audienceId }, file())

  const turns: string[] = []
  const worker = startWorker({ onBatch: ({ accountId }) => void turns.push(accountId) })
  for (const id of ids) await ended(id)
  await worker.stop()
  expect(turns).toHaveLength(6)
  expect(turns.indexOf(stranger)).toBeLessThanOrEqual(1)
})

test('an import does not run ahead of the fan-out by more than the events of a batch, whoever else waits', async () => {
  const world = await createImportWorld()
  await using _ = { [Symbol.asyncDispose]: () => world.end() }
  const { db, clock, stranger, upload, startWorker, ended } = world
  const outbox = createOutbox({ clock, wake: () => undefined })
  const data = { subscriberId: newId('subscriber', new Date()), audienceId: newId('audience', new Date()) }
  const others = Array.from({ length: 5_000 }, () => ({ type: 'contact.deleted' as const, data }))
  await inTransaction(db, (trx) => outbox.append(trx, live(stranger), others))

  const { id } = await upload('email\na@example.com\nb@example.com\nc@example.com\n')
  let taken: 'no' | 'soon' | 'yes' = 'no'
  /** As a fan-out does with the events of the first batch, which takes a while. */
  async function takeFirst(): Promise<void> {
    taken = 'soon'
    for (let trip = 0; trip < 40; trip++) await sql`SELECT 1`.execute(db)
    await sql`
      DELETE FROM outbox_rows WHERE event_id IN (
        SELECT event_id FROM outbox_rows WHERE account_id = ${world.account} ORDER BY event_id LIMIT 2
      )
    `.execute(db)
    taken = 'yes'
  }
  const whenDone: string[] = []
  const worker = startWorker({
    outbox,
    batchRows: 1,
    onBatch: () => {
      whenDone.push(taken)
      if (whenDone.length === 2) void takeFirst()
    },
  })
  expect(await ended(id)).toMatchObject({ status: 'completed', created: 3 })
  await worker.stop()
  expect(whenDone).toEqual(['no', 'no', 'yes'])
})

test.each(['three files', 'a ZIP of three files'])(
  'imports of %s wait for the fan-out as one file does',
  async (what) => {
    const world = await createImportWorld()
    await using _ = { [Symbol.asyncDispose]: () => world.end() }
    const { db, clock, upload, startWorker, ended } = world
    const names = ['a', 'b', 'c']
    const files =
      what === 'three files'
        ? names.map((name) => `email\n${name}@example.com\n`)
        : [zipOf(names.map((name) => csvFile(`${name}.csv`, name)))]
    const ids: string[] = []
    for (const file of files) ids.push((await upload(file)).id)

    let taken: 'no' | 'soon' | 'yes' = 'no'
    async function takeAll(): Promise<void> {
      taken = 'soon'
      for (let trip = 0; trip < 400; trip++) await sql`SELECT 1`.execute(db)
      await sql`DELETE FROM outbox_rows`.execute(db)
      taken = 'yes'
    }
    const whenDone: string[] = []
    const worker = startWorker({
      outbox: createOutbox({ clock, wake: () => undefined }),
      onBatch: () => {
        whenDone.push(taken)
        if (whenDone.length === 2) void takeAll()
      },
    })
    for (const id of ids) await ended(id)
    await worker.stop()
    expect(whenDone).toEqual(['no', 'no', 'yes'])
  },
)
