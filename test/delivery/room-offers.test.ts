import { describe, expect, it } from 'vitest'
import type { Claim } from '../../server/delivery/claim.ts'
import { createLane, createPlaces, type Lane } from '../../server/delivery/lane.ts'
import { createRoomOffers, type RoomOffers } from '../../server/delivery/room.ts'

const claims = [{}, {}] as unknown as Claim[]

type Circumstances = { isSpokenFor: () => boolean; onlyTurns: boolean }

/** Offers of a lane with room for twenty, nine at once; what becomes of claims is told in `told`. */
function offersOf({ isSpokenFor = () => false, onlyTurns = false }: Partial<Circumstances> = {}) {
  const lane: Lane = createLane({
    places: createPlaces(2),
    webhookCap: 2,
    inFlight: new Map(),
    attempt: () => Promise.resolve(),
    onEnd: () => undefined,
  })
  const told: string[] = []
  const offers: RoomOffers = createRoomOffers({
    laneNow: () => (isSpokenFor() ? null : { lane, onlyTurns }),
    batchSize: 9,
    make: async (to, some) => void told.push(`make ${some.length}${to === lane ? '' : ' elsewhere'}`),
    handBack: async (some) => void told.push(`hand back ${some.length}`),
  })
  return { lane, offers, told }
}

describe('room in a lane', () => {
  it('is offered batch by batch, each part of it once, and again when it was given back', async () => {
    const { lane, offers } = offersOf()
    const rooms = [await offers.offer(false), await offers.offer(false), await offers.offer(false)]
    expect(rooms.map(({ size }) => size)).toEqual([9, 9, 2])
    using none = await offers.offer(false)
    expect(none.size).toBe(0)
    for (const room of rooms) room[Symbol.dispose]()
    expect(lane.room()).toBe(20)
  })

  it('is given back once, whether it is filled, disposed of, or both', async () => {
    const { lane, offers, told } = offersOf()
    {
      using room = await offers.offer(false)
      await room.fill(claims)
    }
    expect(told).toEqual(['make 2'])
    expect(lane.room()).toBe(20)
  })

  it('is none while there is little of it: a handful costs as much as a batch', async () => {
    const { lane, offers } = offersOf()
    lane.reserve(19)
    using room = await offers.offer(false)
    expect(room.size).toBe(0)
  })

  it('is none while something else goes first, and is offered to who waits when that has gone', async () => {
    let isSpokenFor = true
    const { offers } = offersOf({ isSpokenFor: () => isSpokenFor })
    expect((await offers.offer(false)).size).toBe(0)
    const waiting = offers.offer(true)
    isSpokenFor = false
    offers.wake()
    expect((await waiting).size).toBe(9)
  })

  it('says whether it is for those alone whose turn it is', async () => {
    const some = await offersOf().offers.offer(false)
    const ofTurns = await offersOf({ onlyTurns: true }).offers.offer(false)
    expect([some.onlyTurns, ofTurns.onlyTurns]).toEqual([false, true])
  })

  it('is not waited for without end', async () => {
    const { lane, offers } = offersOf()
    lane.reserve(20)
    expect((await offers.offer(true)).size).toBe(0)
  })

  it('is none when it is closed, also to who waits, and what fills it then is handed back', async () => {
    const { lane, offers, told } = offersOf()
    const room = await offers.offer(false)
    lane.reserve(11)
    const waiting = offers.offer(true)
    offers.close()
    expect((await waiting).size).toBe(0)
    await room.fill(claims)
    expect(told).toEqual(['hand back 2'])
  })
})
