import type { Fact } from './facts.ts'

/** Recipients here are never written to: they play the story their name tells. RFC 6761: no such host will ever be. */
export const simulatorDomain = 'simulator.test'

/** Each part of a fact that makes the story. */
type Scene = Fact extends infer F ? (F extends Fact ? Omit<F, 'emailId' | 'position' | 'at'> : never) : never

type Story = { meaning: string; scenes: readonly Scene[] }

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
const nobody: Scene = {
  kind: 'bounced',
  bounceType: 'hard',
  reason: 'The mailbox does not exist.',
  reply: '550 5.1.1 No such user',
  host,
}

/** The stories by the local part of the address; what follows a `+` is free. The README shows the same table. */
export const stories: Readonly<Record<string, Story>> = {
  delivered: { meaning: 'sent and delivered', scenes: [taken] },
  bounced: { meaning: 'a hard bounce: the mailbox does not exist', scenes: [nobody] },
  'soft-bounced': { meaning: 'a soft bounce: the mailbox is full', scenes: [full] },
  delayed: { meaning: 'delayed, then sent and delivered', scenes: [later, taken] },
  complained: {
    meaning: 'delivered, then marked as spam',
    scenes: [taken, { kind: 'complained', feedbackType: 'abuse' }],
  },
  opened: { meaning: 'delivered, then opened', scenes: [taken, { kind: 'opened', ...person }] },
  clicked: {
    meaning: 'delivered, opened, and a link clicked',
    scenes: [taken, { kind: 'opened', ...person }, { kind: 'clicked', link: 'https://example.com/', ...person }],
  },
  failed: {
    meaning: 'given up',
    scenes: [{ kind: 'failed', reason: 'The receiving server could not be reached for 72 hours.' }],
  },
  suppressed: {
    meaning: 'not written to, as an address on the suppression list is not',
    scenes: [{ kind: 'suppressed', reason: 'The address is on the suppression list (simulated).' }],
  },
}

const unknown: Story = { meaning: 'anything else bounces', scenes: [nobody] }

/** What happens to a recipient of the simulator, in order. A name without a story bounces: nobody is there. */
export function play(recipient: { emailId: string; position: number; address: string }, at: Date): Fact[] {
  const { emailId, position, address } = recipient
  const name = address.slice(0, address.lastIndexOf('@')).split('+')[0]?.toLowerCase() ?? ''
  const story = Object.hasOwn(stories, name) ? stories[name] : undefined
  return (story ?? unknown).scenes.map((scene) => ({ ...scene, emailId, position, at }))
}
