import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { createDkimKeyMaker } from '../../server/domains/generate-keys.ts'

const { privateKey } = generateKeyPairSync('ed25519')
const pair = { publicKey: 'AAAA', privateKey }

test('keys are made one pair after the other, and accounts take turns', async () => {
  const done: string[] = []
  let atOnce = 0
  let mostAtOnce = 0
  const first = Promise.withResolvers<void>()
  const make = createDkimKeyMaker(async () => {
    mostAtOnce = Math.max(mostAtOnce, ++atOnce)
    await first.promise
    atOnce -= 1
    return { rsa: pair, ed25519: pair }
  })
  const want = async (accountId: string) => {
    await make(accountId)
    done.push(accountId)
  }
  const wanted = ['many', 'many', 'many', 'one', 'two', 'two'].map(want)
  first.resolve()
  await Promise.all(wanted)
  expect(done).toEqual(['many', 'one', 'two', 'many', 'two', 'many'])
  expect(mostAtOnce).toBe(1)
})

test('what could not be made keeps nobody waiting', async () => {
  let failures = 2
  const make = createDkimKeyMaker(async () => {
    if (failures-- > 0) throw new Error('no randomness')
    return { rsa: pair, ed25519: pair }
  })
  const outcomes = await Promise.allSettled(['one', 'one', 'one', 'two'].map(make))
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled', 'rejected'])
})
