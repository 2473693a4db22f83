import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DueDelivery } from '../../../server/webhook-delivery/load-deliveries.ts'
import {
  createDeliveriesInHand,
  type HeldDelivery,
} from '../../../server/webhook-delivery/scheduling/deliveries-in-hand.ts'

/** A bound between the old and the young, far from both, so that no machine is too slow for it. Milliseconds. */
const ageMs = 3_600_000

function heldFor(ms: number): HeldDelivery {
  const since = performance.now() - ms
  return { delivery: {} as DueDelivery, claimed: null, since, aliveAt: since, request: null }
}
const old = () => heldFor(2 * ageMs)
const young = () => heldFor(0)

test('deliveries in hand are taken in the order in which they came, each flow for itself', () => {
  const inHand = createDeliveriesInHand()
  const [first, second, third, other] = [young(), young(), young(), young()]
  inHand.add('a', [first, second])
  inHand.add('b', [other])
  inHand.add('a', [third])
  expect(inHand.take('a')).toBe(first)
  expect(inHand.take('b')).toBe(other)
  expect(inHand.take('b')).toBeUndefined()
  expect(inHand.take('a')).toBe(second)
  expect(inHand.take('a')).toBe(third)
  expect(inHand.take('a')).toBeUndefined()
})

test('deliveries that are in hand for long are taken of all flows at once, and the others stay in their order', () => {
  const inHand = createDeliveriesInHand()
  const [gone, left, stays, after, other] = [old(), old(), young(), young(), old()]
  inHand.add('a', [gone, left, stays])
  inHand.add('b', [other])
  expect(inHand.take('a')).toBe(gone)
  expect(inHand.takeOld(ageMs)).toEqual([left, other])
  expect(inHand.takeOld(ageMs)).toEqual([])
  inHand.add('a', [after])
  expect(inHand.take('a')).toBe(stays)
  expect(inHand.takeOld()).toEqual([after])
  expect(inHand.take('a')).toBeUndefined()
  expect(inHand.take('b')).toBeUndefined()
})

const step = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), flow: fc.constantFrom('a', 'b'), count: fc.nat(4) }),
  fc.record({ kind: fc.constant('take' as const), flow: fc.constantFrom('a', 'b') }),
  fc.constant({ kind: 'age' as const }),
  fc.constant({ kind: 'takeOld' as const }),
  fc.constant({ kind: 'takeAll' as const }),
)

test('whatever is done, each delivery in hand is taken once, as a list for each flow has it', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const inHand = createDeliveriesInHand()
      const lists: Record<string, HeldDelivery[]> = { a: [], b: [] }
      for (const one of steps) {
        if (one.kind === 'add') {
          const added = Array.from({ length: one.count }, young)
          inHand.add(one.flow, added)
          lists[one.flow]?.push(...added)
        } else if (one.kind === 'take') {
          expect(inHand.take(one.flow)).toBe(lists[one.flow]?.shift())
        } else if (one.kind === 'age') {
          for (const delivery of Object.values(lists).flat()) delivery.since -= 2 * ageMs
        } else {
          const isOld = ({ since }: HeldDelivery) => one.kind === 'takeAll' || performance.now() - since > ageMs
          const taken = Object.values(lists).flatMap((list) => list.filter(isOld))
          expect(new Set(one.kind === 'takeAll' ? inHand.takeOld() : inHand.takeOld(ageMs))).toEqual(new Set(taken))
          for (const flow of Object.keys(lists)) lists[flow] = lists[flow]?.filter((held) => !isOld(held)) ?? []
        }
      }
    }),
  )
})
