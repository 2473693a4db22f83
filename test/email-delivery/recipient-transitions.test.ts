import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { eventType } from '../../contract/event-types.ts'
import { simulatorDomain } from '../../contract/simulator.ts'
import { isWaiting } from '../../server/email-delivery/email-status.ts'
import type { RecipientFact } from '../../server/email-delivery/recipient-facts.ts'
import { type RecipientState, transition } from '../../server/email-delivery/recipient-transitions.ts'
import { newId } from '../../server/shared/ids.ts'
import { begunRecipient } from '../support/emails.ts'

const at = new Date('2026-03-01T09:30:00.000Z')
const emailId = newId('email', at)
const recipient = { emailId, address: 'ada@example.com', domain: 'example.com', subject: 'Welcome' }

const sending = begunRecipient(at)

type Told = RecipientFact extends infer F
  ? F extends RecipientFact
    ? Omit<F, 'emailId' | 'position' | 'at'>
    : never
  : never

const accepted: Told = { kind: 'accepted', final: false, reply: '250 2.0.0 queued', host: 'mx.example.com' }
const taken: Told = { ...accepted, final: true }
const deferred: Told = { kind: 'deferred', reason: 'Try later.', reply: '451 4.7.1 later', host: null, unknown: false }
const lost: Told = { kind: 'lost', reason: 'The service stopped.' }
const hard: Told = { kind: 'bounced', bounceType: 'hard', reason: 'Nobody.', reply: '550 5.1.1 nobody', host: null }
const soft: Told = { ...hard, bounceType: 'soft' }
const success: Told = { kind: 'delivered', reply: null, host: null }
const relayed: Told = { kind: 'relayed', reply: '250 2.0.0 OK', host: 'mx.example.com' }
const expanded: Told = { ...relayed, kind: 'expanded' }
const visitor = { userAgent: null, ipAddress: '192.0.2.7', automated: false }

function tell(state: RecipientState, told: Told, when = at, about = recipient) {
  return transition(about, state, { ...told, emailId, position: 0, at: when }, 0.5)
}

/** The state after facts, of another attempt each time one is begun again, and the types of the events they made. */
function story(...facts: (Told | 'begun again')[]): { state: RecipientState; events: string[] } {
  let state = sending
  const events: string[] = []
  for (const fact of facts) {
    if (fact === 'begun again') {
      state = { ...state, status: 'sending', attemptCount: state.attemptCount + 1, nextAttemptAt: null }
      continue
    }
    const next = tell(state, fact)
    if (next === null) continue
    state = next.state
    events.push(...next.events.map(({ type }) => type))
  }
  return { state, events }
}

describe('what facts make of a recipient', () => {
  test.each<[string, (Told | 'begun again')[], string, string[]]>([
    ['a relay takes it', [accepted], 'accepted', ['email.sent']],
    ['its own server takes it', [taken], 'delivered', ['email.sent', 'email.delivered']],
    ['a relay takes it and tells of success', [accepted, success], 'delivered', ['email.sent', 'email.delivered']],
    ['a relay takes it and passes it on', [accepted, relayed, expanded], 'accepted', ['email.sent']],
    [
      'a relay passes it on, and another tells of success',
      [accepted, relayed, success, relayed],
      'delivered',
      ['email.sent', 'email.delivered'],
    ],
    ['a relay passes it on, and it is returned', [accepted, relayed, hard], 'bounced', ['email.sent', 'email.bounced']],
    [
      'a relay tells that it was passed on before its answer is written down',
      [relayed, accepted],
      'accepted',
      ['email.sent'],
    ],
    [
      'a relay tells of success before its answer is written down',
      [success, accepted],
      'delivered',
      ['email.sent', 'email.delivered'],
    ],
    [
      'a relay tells of success after its answer was lost',
      [{ ...deferred, unknown: true }, success],
      'delivered',
      ['email.delivery_delayed', 'email.sent', 'email.delivered'],
    ],
    [
      'deferred, deferred, taken',
      [deferred, 'begun again', deferred, 'begun again', taken],
      'delivered',
      ['email.delivery_delayed', 'email.sent', 'email.delivered'],
    ],
    ['refused', [hard], 'bounced', ['email.bounced']],
    ['taken by a relay, then returned', [accepted, soft], 'bounced', ['email.sent', 'email.bounced']],
    [
      'taken by its server, then returned',
      [taken, hard],
      'bounced',
      ['email.sent', 'email.delivered', 'email.bounced'],
    ],
    ['returned before the answer was written down', [hard, accepted], 'bounced', ['email.bounced', 'email.sent']],
    [
      'a relay is late, twice',
      [
        accepted,
        { kind: 'delayed', reason: 'late', reply: null, host: null },
        { kind: 'delayed', reason: 'late', reply: null, host: null },
      ],
      'accepted',
      ['email.sent', 'email.delivery_delayed'],
    ],
    [
      'marked as spam, told twice',
      [taken, { kind: 'complained', feedbackType: 'abuse' }, { kind: 'complained', feedbackType: 'abuse' }],
      'complained',
      ['email.sent', 'email.delivered', 'email.complained'],
    ],
    [
      'opened twice',
      [taken, { kind: 'opened', ...visitor }, { kind: 'opened', ...visitor }],
      'delivered',
      ['email.sent', 'email.delivered', 'email.opened', 'email.opened'],
    ],
    ['the same answer twice', [taken, taken, accepted], 'delivered', ['email.sent', 'email.delivered']],
    ['given up, then taken all the same', [{ kind: 'failed', reason: 'no way' }, deferred], 'failed', ['email.failed']],
    [
      'suppressed',
      [{ kind: 'suppressed', withheldFor: 'suppressed', reason: 'on the list' }],
      'suppressed',
      ['email.failed'],
    ],
  ])('what facts make of a recipient: %s', (_name, facts, status, events) => {
    expect(story(...facts)).toMatchObject({ state: { status }, events })
  })

  test('a hard bounce and a complaint keep the address from being written to again; a soft bounce does not', () => {
    expect(tell(sending, hard)?.suppress).toBe('hard_bounce')
    expect(tell(sending, soft)?.suppress).toBeNull()
    expect(tell(story(taken).state, { kind: 'complained', feedbackType: 'abuse' })?.suppress).toBe('complaint')
    const played = { ...recipient, domain: simulatorDomain }
    expect(tell(sending, hard, at, played)?.suppress).toBeNull()
  })

  test('what its relay took without an answer is sent in its history too', () => {
    expect(tell(sending, success)?.timeline).toMatchObject([
      { type: 'sent', detail: expect.stringContaining('notification') },
      { type: 'delivered' },
    ])
    expect(tell(story(accepted).state, success)?.timeline).toMatchObject([{ type: 'delivered' }])
  })

  test('what was passed on is so in its history, with what the next server said', () => {
    const passedOn = { type: 'relayed', reply: '250 2.0.0 OK', host: 'mx.example.com' }
    expect(tell(story(accepted).state, relayed)?.timeline).toMatchObject([passedOn])
    expect(tell(sending, relayed)?.timeline).toMatchObject([{ type: 'sent' }, passedOn])
    expect(tell(story(accepted).state, expanded)?.timeline).toMatchObject([{ type: 'expanded' }])
    expect(tell(story(taken).state, relayed)).toBeNull()
  })

  test('a deferral is told once for each attempt', () => {
    const once = story(deferred).state
    expect(tell(once, deferred)).toBeNull()
    expect(tell(story(deferred, 'begun again').state, deferred)).not.toBeNull()
  })

  test('a recipient is given up 72 hours after the first attempt, with the last answer', () => {
    const threeDays = new Date(at.getTime() + 72 * 3_600_000)
    const last = tell({ ...sending, attemptCount: 20 }, deferred, threeDays)
    expect(last?.state).toMatchObject({ status: 'failed', nextAttemptAt: null })
    expect(last?.events).toMatchObject([
      { type: 'email.failed', data: { reason: expect.stringContaining('451 4.7.1') } },
    ])
    const before = tell({ ...sending, attemptCount: 20 }, deferred, new Date(threeDays.getTime() - 60_000))
    expect(before?.state).toMatchObject({ status: 'deferred', nextAttemptAt: threeDays })
  })

  test('a recipient whose sender died is due at once after 72 hours too, where its campaign is paused, and told of once', () => {
    const fourDays = new Date(at.getTime() + 96 * 3_600_000)
    const found = tell({ ...sending, attemptCount: 20 }, lost, fourDays)
    expect(found).toMatchObject({
      state: { status: 'deferred', nextAttemptAt: fourDays, attemptCount: 20, firstAttemptAt: at },
      timeline: [{ type: 'unknown', detail: 'The service stopped.' }],
      events: [{ type: 'email.delivery_delayed' }],
    })
    expect(tell(story(lost).state, lost)).toBeNull()
    expect(story(deferred, 'begun again', lost).events).toEqual(['email.delivery_delayed'])
  })

  test('the history of a message that may have been taken, and is tried no more, says that the recipient may have it', () => {
    const unknown = { ...deferred, reply: null, reason: 'The line broke.', unknown: true }
    expect(tell(sending, unknown)?.timeline).toMatchObject([{ type: 'unknown', detail: 'The line broke.' }])
    const last = tell(sending, unknown, new Date(at.getTime() + 72 * 3_600_000))
    expect(last?.timeline).toMatchObject([
      { type: 'unknown', detail: 'The line broke.' },
      { type: 'failed', detail: expect.stringContaining('the recipient may have it') },
    ])
    expect(last?.state.reason).toBe(last?.timeline[1]?.detail)
  })

  test.each<[string, Told, (Told | 'begun again')[]]>([
    ['its server takes it', taken, [deferred, 'begun again']],
    ['a notification says that it was delivered', success, [deferred]],
    ['it was marked as spam', { kind: 'complained', feedbackType: 'abuse' }, [deferred]],
  ])('why a recipient was put off is forgotten when %s', (_when, fact, before) => {
    const { state } = story(...before)
    expect(state.reason).toBe('451 4.7.1 later')
    expect(tell(state, fact)?.state.reason).toBeNull()
  })
})

const anyFact: fc.Arbitrary<Told> = fc.constantFrom(
  accepted,
  taken,
  deferred,
  lost,
  hard,
  soft,
  success,
  relayed,
  expanded,
  { kind: 'delayed' as const, reason: 'late', reply: null, host: null },
  { kind: 'failed' as const, reason: 'no' },
  { kind: 'suppressed' as const, withheldFor: 'suppressed' as const, reason: 'no' },
  { kind: 'complained' as const, feedbackType: 'abuse' },
  { kind: 'opened' as const, ...visitor },
  { kind: 'clicked' as const, link: 'https://example.com/', ...visitor },
)

test('in whatever order facts come, what ended is not begun anew, and every event has the published shape', () => {
  fc.assert(
    fc.property(fc.array(anyFact, { maxLength: 12 }), (facts) => {
      let state = sending
      const counts = new Map<string, number>()
      for (const fact of facts) {
        const next = tell(state, fact)
        if (next === null) continue
        if (!isWaiting(state.status)) expect(isWaiting(next.state.status)).toBe(false)
        expect(next.state.nextAttemptAt === null).toBe(next.state.status !== 'deferred')
        for (const { type, data } of next.events) {
          eventType(type).data.parse(data)
          counts.set(type, (counts.get(type) ?? 0) + 1)
        }
        if (counts.has('email.delivered')) expect(counts.has('email.sent')).toBe(true)
        state = next.state
      }
      for (const type of [
        'email.sent',
        'email.delivered',
        'email.delivery_delayed',
        'email.complained',
        'email.bounced',
      ]) {
        expect(counts.get(type) ?? 0).toBeLessThanOrEqual(1)
      }
    }),
  )
})

const hours = 3_600_000
const waiting: Told = { kind: 'waiting', reason: 'Refused.', reply: null, host: null }
const later = (ms: number) => new Date(at.getTime() + ms)
const put = (over: Partial<RecipientState>): RecipientState => ({ ...sending, status: 'deferred', ...over })

test.each<[string, RecipientState, Date, string | undefined]>([
  ['when it was put off', put({ attemptCount: 0, firstAttemptAt: null, delayedAt: at }), later(72 * hours), 'failed'],
  [
    'when it was put off, also where the first to find that out began late',
    { ...sending, attemptCount: 1, firstAttemptAt: later(48 * hours), delayedAt: at },
    later(72 * hours),
    'failed',
  ],
  [
    'its first attempt, where there was one',
    { ...sending, attemptCount: 2, firstAttemptAt: later(48 * hours), delayedAt: at },
    later(72 * hours),
    'sending',
  ],
  [
    'then, and not before',
    put({ attemptCount: 0, firstAttemptAt: null, delayedAt: at }),
    later(71 * hours),
    'deferred',
  ],
])(
  'a recipient that waits for servers which cannot be used is given up 72 hours after %s',
  (_, state, when, status) => {
    expect((tell(state, waiting, when)?.state ?? state).status).toBe(status)
  },
)
