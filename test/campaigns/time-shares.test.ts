import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTimeShares } from '../../server/campaigns/time-shares.ts'

/** Gives turns that take `msOf` each, as a worker does, until `untilMs`. Returns the time that each account had. */
async function shareOut(msOf: Record<string, number>, untilMs: number): Promise<Record<string, number>> {
  const shares = createTimeShares()
  const had = Object.fromEntries(Object.keys(msOf).map((accountId) => [accountId, 0]))
  for (let now = 0; now < untilMs; ) {
    const claimed = await shares.claim(async (without) => Object.keys(msOf).filter((one) => !without.includes(one)))
    const turns = claimed.map((accountId) => ({ accountId, ms: msOf[accountId] ?? 0 }))
    expect(turns.length).toBeGreaterThan(0)
    shares.record(turns)
    for (const { accountId, ms } of turns) {
      had[accountId] = (had[accountId] ?? 0) + ms
      now += ms
    }
  }
  return had
}

test('an account with turns of three seconds gets no more time than one with turns of a tenth', async () => {
  const { slow = 0, quick = 0 } = await shareOut({ slow: 3_000, quick: 100 }, 300_000)
  expect(quick / (slow + quick)).toBeGreaterThan(0.4)
})

test('nine accounts with turns of three seconds leave a tenth of the time to the tenth account', async () => {
  const slow = Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`slow ${n}`, 3_000]))
  const { quick = 0 } = await shareOut({ ...slow, quick: 100 }, 1_000_000)
  expect(quick / 1_000_000).toBeGreaterThan(0.07)
})

test('usual turns leave nobody out, and who is alone goes on at once', async () => {
  const shares = createTimeShares()
  shares.record([
    { accountId: 'one', ms: 20 },
    { accountId: 'other', ms: 200 },
  ])
  expect(shares.isOwed()).toBe(false)
  shares.record([{ accountId: 'one', ms: 3_000 }])
  expect(shares.isOwed()).toBe(true)
  const asked: (readonly string[])[] = []
  expect(
    await shares.claim(async (without) => {
      asked.push(without)
      return without.length === 0 ? ['one'] : []
    }),
  ).toEqual(['one'])
  expect(asked).toEqual([['one'], []])
})

test('every account that is due gets a turn, however long those of all take', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 50, max: 10_000 }), { minLength: 1, maxLength: 12 }), async (times) => {
      const had = await shareOut(Object.fromEntries(times.map((ms, n) => [`account ${n}`, ms])), 100_000)
      for (const ms of Object.values(had)) expect(ms).toBeGreaterThan(0)
    }),
    { numRuns: 20 },
  )
})
