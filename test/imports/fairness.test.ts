import { expect, test } from 'vitest'
import { live } from '../support/scope.ts'
import { createImportWorld } from '../support/worlds/imports.ts'

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
