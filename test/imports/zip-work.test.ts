import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { readFilesOf } from '../../server/imports/parts.ts'
import { deleteEndedImports } from '../../server/imports/retention.ts'
import { patienceMs } from '../support/patience.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createImportWorld, type ImportWorld } from '../support/worlds/imports.ts'
import { csvFile, zipOf } from '../support/zip.ts'

let world: ImportWorld

beforeAll(async () => {
  world = await createImportWorld()
})
afterAll(() => world.end())

const addressesOf = async (audienceId: string) =>
  (await world.people(audienceId)).map(({ email }) => email.split('@')[0])

const addresses = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}-${n}`)

test('the import of a ZIP is gone on with in its second file where a worker has died, and no row is done twice', async () => {
  const { startWorker, upload, ended, imports, db, scopeOf, moveClock } = world
  const bad = { name: 'b.csv', content: `${csvFile('b.csv', ...addresses('kb', 40)).content}nobody\n` }
  const { id, audienceId } = await upload(zipOf([csvFile('a.csv', ...addresses('ka', 20)), bad]))
  const { promise: some, resolve } = Promise.withResolvers<void>()
  let batches = 0
  // Hangs in the middle of the second file for ever, as a process that was killed.
  const dead = startWorker({
    batchRows: 5,
    onBatch: () => {
      if (++batches === 7) {
        resolve()
        throw new Error('killed')
      }
    },
  })
  await some
  await dead.stop()
  const middle = await imports.get(db, scopeOf(), id)
  expect(middle.rowsRead).toBeGreaterThan(20)
  expect(middle.rowsRead).toBeLessThan(61)
  moveClock(60_000)
  const other = startWorker({ batchRows: 9 })
  expect(await ended(id)).toMatchObject({ status: 'completed', rowsRead: 61, created: 60, skipped: 0, failed: 1 })
  await other.stop()
  expect(await addressesOf(audienceId)).toHaveLength(60)
  expect((await world.failedRows(id))[1]).toMatch(/,b\.csv,41,/)
})

test('the import of a ZIP is unpacked behind others of its account alone, and one that is canceled meanwhile is not begun', async () => {
  const { db, account, stranger, audiences, imports, scopeOf, upload } = world
  const held = Promise.withResolvers<void>()
  const holding = Promise.withResolvers<void>()
  async function* body() {
    yield zipOf([csvFile('a.csv', 'first')])
    const { id } = await db
      .selectFrom('imports')
      .select('id')
      .where('account_id', '=', account)
      .where('status', '=', 'uploading')
      .executeTakeFirstOrThrow()
    // The first piece of its file cannot be stored until this ends.
    const piece = { account_id: account, import_id: id, position: 0, bytes: Buffer.from('held') }
    const transaction = db.transaction().execute(async (trx) => {
      await trx.insertInto('import_chunks').values(piece).execute()
      holding.resolve()
      await held.promise
      throw new Error('undone')
    })
    transaction.catch(() => undefined)
    await holding.promise
  }
  const storedZips = (count: number) =>
    vi.waitFor(
      async () => {
        const rows = await db
          .selectFrom('imports')
          .innerJoin('import_zip_chunks', 'import_zip_chunks.import_id', 'imports.id')
          .select(['imports.id', 'file_name'])
          .execute()
        expect(rows).toHaveLength(count)
        return rows
      },
      { timeout: patienceMs },
    )
  async function* other() {
    yield zipOf([csvFile('a.csv', 'theirs')])
  }
  const { id: audienceId } = await audiences.create(db, scopeOf(), { name: 'News' })
  const theirs = await audiences.create(db, scopeOf('live', stranger), { name: 'Theirs' })
  const first = imports.create(db, scopeOf(), { audienceId }, body())
  const later: Promise<unknown>[] = []
  try {
    await holding.promise
    await storedZips(1)
    for (const fileName of ['second', 'third']) {
      later.push(refusal(upload(zipOf([csvFile('a.csv', fileName)]), { fileName })))
    }
    const waiting = (await storedZips(3)).filter(({ file_name }) => file_name !== null)
    const beside = await imports.create(db, scopeOf('live', stranger), { audienceId: theirs.id }, other())
    expect(beside.status).toBe('waiting')
    await imports.cancel(db, scopeOf('live', stranger), beside.id)
    for (const { id } of waiting) {
      expect(await imports.get(db, scopeOf(), id)).toMatchObject({ status: 'uploading', bytes: 0 })
      await imports.cancel(db, scopeOf(), id)
    }
  } finally {
    held.resolve()
  }
  expect((await first).status).toBe('waiting')
  expect(await Promise.all(later)).toEqual(['conflict', 'conflict'])
  await imports.cancel(db, scopeOf(), (await first).id)
})

test('the import of a ZIP that is canceled leaves what was done, and its files are deleted', async () => {
  const { db, upload, imports, scopeOf, clock } = world
  const { id } = await upload(zipOf([csvFile('a.csv', ...addresses('c', 5))]))
  expect(await imports.cancel(db, scopeOf(), id)).toMatchObject({ status: 'canceled', rowsRead: 0 })
  const rest = {
    account_id: world.account,
    import_id: id,
    position: 0,
    bytes: Buffer.from('left by a process that died'),
  }
  await db.insertInto('import_zip_chunks').values(rest).execute()
  await deleteEndedImports({ db, clock })
  for (const table of ['import_chunks', 'import_zip_chunks'] as const) {
    expect(await db.selectFrom(table).select('position').where('import_id', '=', id).execute()).toEqual([])
  }
})

test('the import of a ZIP is stored without its ZIP and without heads, file behind file', async () => {
  const { db, upload, imports, scopeOf } = world
  const found = await upload(zipOf([csvFile('a.csv', 's1'), csvFile('b.csv', 's2')]))
  expect(await db.selectFrom('import_zip_chunks').select('position').execute()).toEqual([])
  const row = await db.selectFrom('imports').selectAll().where('id', '=', found.id).executeTakeFirstOrThrow()
  expect(readFilesOf(row.files ?? []).map(({ begin, end }) => [begin, end])).toEqual([
    [0, 15],
    [15, 30],
  ])
  expect(found.bytes).toBe(30)
  await imports.cancel(db, scopeOf(), found.id)
})
