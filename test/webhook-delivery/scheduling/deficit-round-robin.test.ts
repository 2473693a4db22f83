import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  createAccountTurns,
  quantum,
  type TurnAccount,
  unansweredPlaces,
} from '../../../server/webhook-delivery/scheduling/deficit-round-robin.ts'
import { mayHoldMore, roomFor } from '../../../server/webhook-delivery/scheduling/dynamic-threshold.ts'

/** An account with one flow that may start, whose endpoint is known to respond. */
function idle() {
  const state: TurnAccount['state'] = 'no_work'
  return { held: 0, unanswered: 0, deficit: 0, ready: { size: 1 }, readyAnswered: { size: 1 }, state }
}

const threshold = fc.record({ places: fc.integer({ min: 1, max: 300 }), alpha: fc.integer({ min: 1, max: 8 }) })

test('the turns of accounts look at a bounded number of accounts for each decision, however many there are and hold too much', () => {
  const choices = fc.array(fc.nat(), { minLength: 1_000, maxLength: 1_000 })
  const counts = fc.record({ accounts: fc.integer({ min: 1, max: 3_000 }), each: fc.integer({ min: 1, max: 3 }) })
  fc.assert(
    fc.property(counts, fc.integer({ min: 1, max: 8 }), choices, ({ accounts, each }, alpha, picks) => {
      let looks = 0
      // A few places are left when each account has its own.
      const turns = createAccountTurns<TurnAccount>({ places: accounts * each + 2, alpha })
      const ready = {
        get size() {
          looks += 1
          return 1
        },
      }
      for (let count = 0; count < accounts; count++) turns.place({ ...idle(), ready, readyAnswered: ready })
      const held: TurnAccount[] = []
      const takeNext = () => {
        const account = turns.current()
        if (account === undefined) return false
        turns.take(account)
        held.push(account)
        return true
      }
      while (takeNext());
      looks = 0
      for (const pick of picks) {
        if (pick % 2 === 0 && takeNext()) continue
        const [one] = held.splice(pick % held.length, 1)
        if (one !== undefined) turns.release(one)
      }
      expect(looks).toBeLessThan(10 * picks.length)
    }),
    { numRuns: 30, endOnFailure: true },
  )
})

test('the turns of accounts do not look again and again at accounts that hold too much', () => {
  const rounds = 500
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 8 }), (greedy, alpha) => {
      let looks = 0
      const turns = createAccountTurns<TurnAccount>({ places: greedy * alpha + 1, alpha })
      const ready = {
        get size() {
          looks += 1
          return 1
        },
      }
      // One place is left, and nobody may have it who holds α.
      for (let count = 0; count < greedy; count++) {
        const account: TurnAccount = { ...idle(), ready, readyAnswered: ready }
        turns.place(account)
        for (let taken = 0; taken < alpha; taken++) turns.take(account)
      }
      looks = 0
      for (let round = 0; round < rounds; round++) {
        const calm = idle()
        turns.place(calm)
        expect(turns.current()).toBe(calm)
        turns.take(calm)
        calm.ready.size = 0
        calm.readyAnswered.size = 0
        turns.release(calm)
      }
      expect(looks).toBeLessThan(10 * rounds)
    }),
    { numRuns: 30, endOnFailure: true },
  )
})

test('the turns of accounts look at a bounded number of accounts for each start of one whose endpoint is not known to respond', () => {
  let looks = 0
  const places = 400
  const turns = createAccountTurns<TurnAccount>({ places, alpha: 4 })
  const ready = {
    get size() {
      looks += 1
      return 1
    },
  }
  for (let count = 0; count < 3_000; count++) turns.place({ ...idle(), ready, readyAnswered: { size: 0 } })
  const held: TurnAccount[] = []
  const takeAll = () => {
    for (let account = turns.current(); account !== undefined; account = turns.current()) {
      turns.take(account)
      turns.changeUnanswered(account, 1)
      held.push(account)
    }
  }
  takeAll()
  expect(held).toHaveLength(unansweredPlaces(places))
  looks = 0
  for (let round = 0; round < 1_000; round++) {
    const one = held.shift()
    if (one === undefined) throw new Error('nobody holds a place')
    turns.changeUnanswered(one, -1)
    turns.release(one)
    takeAll()
  }
  expect(looks).toBeLessThan(20 * 1_000)
  expect(held).toHaveLength(unansweredPlaces(places))
  expect(turns.taken).toBe(unansweredPlaces(places))
})

test('an account whose endpoints are known to respond starts while all places for others are taken', () => {
  const turns = createAccountTurns<TurnAccount>({ places: 16, alpha: 4 })
  const hanging = Array.from({ length: 20 }, () => ({ ...idle(), readyAnswered: { size: 0 } }))
  for (const account of hanging) turns.place(account)
  for (let account = turns.current(); account !== undefined; account = turns.current()) {
    turns.take(account)
    turns.changeUnanswered(account, 1)
  }
  expect(turns.taken).toBe(12)
  const calm = idle()
  turns.place(calm)
  expect(turns.current()).toBe(calm)
})

test('a free place for endpoints that are not known to respond goes to the next account when the first has no work any more', () => {
  const turns = createAccountTurns<TurnAccount>({ places: 4, alpha: 4 })
  const accounts = Array.from({ length: 5 }, () => ({ ...idle(), readyAnswered: { size: 0 } }))
  const end = (account: (typeof accounts)[number]) => {
    account.ready.size = 0
    turns.place(account)
  }
  for (const account of accounts) turns.place(account)
  for (const account of accounts.slice(0, 3)) {
    turns.take(account)
    turns.changeUnanswered(account, 1)
    end(account)
  }
  expect(turns.current()).toBeUndefined()
  const [first, , , fourth, fifth] = accounts
  if (first === undefined || fourth === undefined) throw new Error('there are no accounts')
  turns.changeUnanswered(first, -1)
  expect(turns.current()).toBe(fourth)
  end(fourth)
  expect(turns.current()).toBe(fifth)
})

test('the turns of accounts give each account that may start no more than its starts before the others have had theirs', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 50 }), (count) => {
      const turns = createAccountTurns<TurnAccount & { id: number; starts: number }>({ places: 1e6, alpha: 1e3 })
      for (let id = 0; id < count; id++) {
        turns.place({ ...idle(), id, starts: 0 })
      }
      const starts = new Map<number, number>()
      for (let start = 0; start < 20 * count * quantum; start++) {
        const account = turns.current()
        if (account === undefined) throw new Error('nobody may start')
        turns.take(account)
        starts.set(account.id, (starts.get(account.id) ?? 0) + 1)
        const numbers = [...starts.values()]
        expect(Math.max(...numbers) - (starts.size < count ? 0 : Math.min(...numbers))).toBeLessThanOrEqual(quantum)
      }
    }),
    { numRuns: 10 },
  )
})

test('the threshold lets each of n greedy accounts have α/(1+nα) of the places, so that some stay free for the next', () => {
  const settings = { places: 1_024, alpha: 4 }
  for (const greedy of [1, 2, 10]) {
    const turns = createAccountTurns<TurnAccount>(settings)
    const accounts = Array.from({ length: greedy }, idle)
    for (const account of accounts) turns.place(account)
    for (let account = turns.current(); account !== undefined; account = turns.current()) turns.take(account)
    const share = (1_024 * 4) / (1 + greedy * 4)
    for (const { held } of accounts) expect(Math.abs(held - share)).toBeLessThanOrEqual(quantum)
    expect(turns.taken).toBeLessThan(1_024)
  }
})

test('the threshold allows at once as many as it would one by one', () => {
  fc.assert(
    fc.property(threshold, fc.nat(300), fc.nat(300), (settings, held, others) => {
      let more = 0
      while (mayHoldMore(settings, held + more, held + others + more)) more += 1
      expect(roomFor(settings, held, held + others)).toBe(more)
    }),
  )
})
