import { expect, test } from 'vitest'
import { createLedger, type Ledger } from './ledger.ts'
import { judgeMail, type MailEvidence } from './mail-verdict.ts'

/** One email to one recipient, sent once and told of. */
function allWell(change: (evidence: MailEvidence & { ledger: Ledger }) => Partial<MailEvidence> = () => ({})) {
  const ledger = createLedger()
  ledger.begin('hello')
  ledger.acknowledge('hello')
  const evidence = {
    ledger,
    recipientsOf: () => ['ada'],
    emails: [email],
    recipients: [recipient],
    events: [event],
    arrivals: [arrival],
    copies: [copy],
  }
  return { ...evidence, ...change(evidence) }
}

const email = { mark: 'hello', status: 'sent', messageId: '<1@test>', hasJob: false }
const recipient = {
  mark: 'hello',
  address: 'ada',
  status: 'accepted',
  resent: 0,
  deferred: 0,
  refused: 0,
  unknown: 0,
  wasPaused: false,
  lost: 0,
}
const event = { id: 'evt_1', type: 'email.sent', to: 'ada' }
const arrival = { path: '/1', eventId: 'evt_1', body: '{}', taken: true }
const copy = { messageId: '<1@test>', recipients: ['ada'] }
const bob = { ...recipient, address: 'bob' }

test('a verdict finds nothing wrong where all is well', () => {
  expect(judgeMail(allWell())).toEqual([])
})

test.each([
  ['it was refused, and sent to later', { refused: 1, deferred: 1 }],
  ['a process died with a refusal', { refused: 1, resent: 1, lost: 1 }],
  ['a process died, and its campaign was paused', { unknown: 1, resent: 1, lost: 1, wasPaused: true }],
])('a verdict finds nothing wrong where %s', (_, change) => {
  const isDelayed = 'deferred' in change || 'unknown' in change
  const delayed = { ...event, id: 'evt_0', type: 'email.delivery_delayed' }
  const events = isDelayed ? [delayed, event] : [event]
  const arrivals = events.map(({ id }) => ({ ...arrival, eventId: id }))
  expect(judgeMail(allWell(() => ({ recipients: [{ ...recipient, ...change }], events, arrivals })))).toEqual([])
})

test.each<[string, string, Parameters<typeof allWell>[0]]>([
  ['an email lost', 'acknowledged, and is lost', () => ({ emails: [], recipients: [], copies: [], events: [] })],
  ['a recipient lost', 'has lost ada', () => ({ recipients: [bob] })],
  ['an email stored twice', 'stored 2 times', () => ({ emails: [email, email] })],
  ['an email of nobody', 'sent by nobody', () => ({ emails: [email, { ...email, mark: 'eve' }] })],
  ['one that is stuck', 'is still sending', () => ({ emails: [{ ...email, status: 'sending', hasJob: true }] })],
  ['one nobody will send', 'sending without a job', () => ({ emails: [{ ...email, status: 'sending' }] })],
  ['a job left behind', 'still has a job', () => ({ emails: [{ ...email, hasJob: true }] })],
  ['a recipient that waits', 'ada is deferred', () => ({ recipients: [{ ...recipient, status: 'deferred' }] })],
  ['a recipient without the message', 'was sent nothing', () => ({ copies: [] })],
  ['a duplicate nothing tells of', 'sent 2 copies, and 0', () => ({ copies: [copy, copy] })],
  [
    'a duplicate more than answers were lost',
    'sent 3 copies, and 1',
    () => ({ recipients: [{ ...recipient, resent: 1, lost: 1 }], copies: [copy, copy, copy] }),
  ],
  ['a note of nothing', '1 times, and 0 answers', () => ({ recipients: [{ ...recipient, resent: 1 }] })],
  ['a loss without a note', '0 times, and 1 answers', () => ({ recipients: [{ ...recipient, lost: 1 }] })],
  ['an event twice', 'told of by email.sent, email.sent', () => ({ events: [event, event] })],
  [
    'a delay that was none',
    'told of by email.delivery_delayed, email.sent',
    () => ({ events: [{ ...event, type: 'email.delivery_delayed' }, event] }),
  ],
  [
    'a delay that nothing tells of',
    'told of by email.sent',
    () => ({ recipients: [{ ...recipient, deferred: 1, refused: 1 }] }),
  ],
  ['a delay without a cause', 'refused 0 times, and', () => ({ recipients: [{ ...recipient, deferred: 1 }] })],
  [
    'a refusal that nothing tells of',
    'refused 1 times and sent 1 copies, and its history has 0 and 1',
    () => ({ recipients: [{ ...recipient, refused: 1 }] }),
  ],
  [
    'a refusal and a duplicate that the same note would tell of',
    'refused 1 times and sent 2 copies, and its history has 0 and 2',
    () => ({ recipients: [{ ...recipient, refused: 1, resent: 1, lost: 1 }], copies: [copy, copy] }),
  ],
  [
    'a loss in a pause where there was none',
    'lost 1 times in a pause, and there was none',
    () => ({ recipients: [{ ...recipient, unknown: 1, resent: 1, lost: 1 }] }),
  ],
  [
    'more losses in a pause than there were',
    'lost 2 times in a pause, and 1 in all',
    () => ({ recipients: [{ ...recipient, wasPaused: true, unknown: 2, resent: 1, lost: 1 }] }),
  ],
  [
    'a loss in a pause that was not sent again',
    'lost 1 times in a pause, and sent again 0 times',
    () => ({ recipients: [{ ...recipient, wasPaused: true, unknown: 1, lost: null }] }),
  ],
  ['no event', 'told of by nothing', () => ({ events: [] })],
  ['an event that did not arrive', 'was not delivered', () => ({ arrivals: [{ ...arrival, taken: false }] })],
  [
    'a copy under another name',
    'as <2@test>',
    () => ({ recipients: [{ ...recipient, resent: 1, lost: 1 }], copies: [copy, { ...copy, messageId: '<2@test>' }] }),
  ],
  ['a message of nobody', 'never taken', () => ({ copies: [copy, { ...copy, recipients: ['eve'] }] })],
])('a verdict finds %s', (_, complaint, change) => {
  expect(judgeMail(allWell(change))).toContainEqual(expect.stringContaining(complaint))
})

test('a verdict forgives a copy for each answer that was lost, and one where losses are not known but told of', () => {
  const twice = [copy, copy]
  expect(judgeMail(allWell(() => ({ recipients: [{ ...recipient, resent: 1, lost: 1 }], copies: twice })))).toEqual([])
  expect(judgeMail(allWell(() => ({ recipients: [{ ...recipient, resent: 1, lost: null }], copies: twice })))).toEqual(
    [],
  )
})
