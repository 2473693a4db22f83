import { expect, test } from 'vitest'
import { createLedger, type Ledger } from './ledger.ts'
import { type Evidence, judge } from './verdict.ts'

/** One acknowledged write, delivered once to one webhook. */
function allWell(change: (evidence: Evidence & { ledger: Ledger }) => Partial<Evidence> = () => ({})): Evidence {
  const ledger = createLedger()
  ledger.begin('ada')
  ledger.acknowledge('ada')
  const evidence: Evidence = {
    ledger,
    events: [{ id: 'evt_1', accountId: 'acc_1', type: 'subscriber.added', mark: 'ada', body: '{}' }],
    webhooks: [{ id: 'wh_1', accountId: 'acc_1', path: '/1', types: ['subscriber.added'] }],
    deliveries: [{ id: 'dlv_1', webhookId: 'wh_1', eventId: 'evt_1', status: 'succeeded', hasJob: false }],
    outbox: [],
    arrivals: [arrival],
  }
  return { ...evidence, ...change(evidence) }
}

const arrival = { path: '/1', eventId: 'evt_1', body: '{}', taken: true }
const delivery = { id: 'dlv_1', webhookId: 'wh_1', eventId: 'evt_1', status: 'pending', hasJob: true }
const secondEvent = { id: 'evt_2', accountId: 'acc_1', type: 'subscriber.added', mark: 'ada', body: '{}' }
const otherEvent = { ...secondEvent, type: 'email.sent' }

test('a verdict finds nothing wrong where all is well', () => {
  expect(judge(allWell())).toEqual([])
  expect(judge(allWell(() => ({ arrivals: [{ ...arrival, taken: false }, arrival] })))).toEqual([])
  expect(judge(allWell(({ events }) => ({ events: [...events, otherEvent] })))).toEqual([])
  const ofAnother = { id: 'wh_2', accountId: 'acc_2', path: '/2', types: ['subscriber.added'] }
  expect(judge(allWell(({ webhooks }) => ({ webhooks: [...webhooks, ofAnother] })))).toEqual([])
})

test.each<[string, string, Parameters<typeof allWell>[0]]>([
  ['an event lost', 'acknowledged, and its event is lost', () => ({ events: [], arrivals: [], deliveries: [] })],
  [
    'an event of what was rolled back',
    'rolled back, and its event is there',
    ({ ledger }) => {
      ledger.rollBack('ada')
      return {}
    },
  ],
  ['a write made twice', 'written 2 times', ({ events }) => ({ events: [...events, secondEvent] })],
  [
    'an event of nobody',
    'written by nobody',
    ({ events }) => ({ events: [...events, { ...secondEvent, mark: 'eve' }] }),
  ],
  [
    'a request for what was not committed',
    'never committed',
    () => ({ arrivals: [arrival, { ...arrival, eventId: 'evt_9' }] }),
  ],
  ['another body', 'another body', () => ({ arrivals: [{ ...arrival, body: '{ }' }] })],
  ['an event without its delivery', 'has 0 deliveries', () => ({ deliveries: [] })],
  ['nothing that arrived', 'was not delivered', () => ({ arrivals: [] })],
  ['only refusals', 'was not delivered', () => ({ arrivals: [{ ...arrival, taken: false }] })],
  ['a duplicate', 'was delivered 2 times, and 0', () => ({ arrivals: [arrival, arrival] })],
  [
    'a duplicate more than claims were lost',
    'was delivered 3 times, and 1',
    ({ ledger }) => {
      ledger.lose([{ of: 'dlv_1', claimedAt: new Date(1) }])
      ledger.lose([{ of: 'dlv_1', claimedAt: new Date(1) }])
      return { arrivals: [arrival, arrival, arrival] }
    },
  ],
  ['an event not fanned out', 'never fanned out', () => ({ outbox: ['evt_1'] })],
  ['a delivery that is stuck', 'still pending', () => ({ deliveries: [delivery] })],
  [
    'a delivery that nobody will make',
    'pending without a job',
    () => ({ deliveries: [{ ...delivery, hasJob: false }] }),
  ],
  ['a delivery given up', 'is failed', () => ({ deliveries: [{ ...delivery, status: 'failed', hasJob: false }] })],
  ['a job left behind', 'still has a job', () => ({ deliveries: [{ ...delivery, status: 'succeeded' }] })],
])('a verdict finds %s', (_, complaint, change) => {
  expect(judge(allWell(change))).toContainEqual(expect.stringContaining(complaint))
})

test('a verdict forgives a duplicate for each claim that was lost', () => {
  const evidence = allWell(({ ledger }) => {
    ledger.lose([{ of: 'dlv_1', claimedAt: new Date(1) }])
    return { arrivals: [arrival, arrival] }
  })
  expect(judge(evidence)).toEqual([])
})
