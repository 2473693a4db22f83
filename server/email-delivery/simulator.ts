import { type SimulatorName, simulatorDomain } from '../../contract/simulator.ts'
import type { RecipientFact } from './recipient-facts.ts'

/** A fact without its email, position and time. */
type Scene = RecipientFact extends infer F
  ? F extends RecipientFact
    ? Omit<F, 'emailId' | 'position' | 'at'>
    : never
  : never

const host = `mx.${simulatorDomain}`
const person = { userAgent: 'Mozilla/5.0 (simulator)', ipAddress: '192.0.2.1', automated: false } as const
const taken: Scene = { kind: 'accepted', final: true, reply: '250 2.0.0 OK', host }
const later: Scene = {
  kind: 'deferred',
  reason: 'The server asks to try again later.',
  reply: '451 4.7.1 Try again later',
  host,
  unknown: false,
}
const full: Scene = {
  kind: 'bounced',
  bounceType: 'soft',
  reason: 'The mailbox is full.',
  reply: '552 5.2.2 Mailbox full',
  host,
}
const noSuchMailbox: Scene = {
  kind: 'bounced',
  bounceType: 'hard',
  reason: 'The mailbox does not exist.',
  reply: '550 5.1.1 No such user',
  host,
}

/** The scenes of each story, in order. */
const stories: Readonly<Record<SimulatorName, readonly Scene[]>> = {
  delivered: [taken],
  bounced: [noSuchMailbox],
  'soft-bounced': [full],
  delayed: [later, taken],
  complained: [taken, { kind: 'complained', feedbackType: 'abuse' }],
  opened: [taken, { kind: 'opened', ...person }],
  clicked: [taken, { kind: 'opened', ...person }, { kind: 'clicked', link: 'https://example.com/', ...person }],
  failed: [{ kind: 'failed', reason: 'The receiving server could not be reached for 72 hours.' }],
  suppressed: [
    { kind: 'suppressed', withheldFor: 'suppressed', reason: 'The address is on the suppression list (simulated).' },
  ],
}

/** Returns the facts that a simulator recipient produces, in order. An unknown name bounces: no such mailbox. */
export function play(recipient: { emailId: string; position: number; address: string }, at: Date): RecipientFact[] {
  const { emailId, position, address } = recipient
  const name = address.slice(0, address.lastIndexOf('@')).split('+')[0]?.toLowerCase() ?? ''
  const scenes = hasStory(name) ? stories[name] : [noSuchMailbox]
  return scenes.map((scene) => ({ ...scene, emailId, position, at }))
}

function hasStory(name: string): name is SimulatorName {
  return Object.hasOwn(stories, name)
}
