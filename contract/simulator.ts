/** Recipients here are never written to: they play the story their name tells. RFC 6761: no such host will ever be. */
export const simulatorDomain = 'simulator.test'

/** The behaviour of recipients of the simulator, by the local part of the address. The part after a `+` is free. */
export const simulatorStories = {
  delivered: 'sent and delivered',
  bounced: 'a hard bounce: the mailbox does not exist',
  'soft-bounced': 'a soft bounce: the mailbox is full',
  delayed: 'delayed, then sent and delivered',
  complained: 'delivered, then marked as spam',
  opened: 'delivered, then opened',
  clicked: 'delivered, opened, and a link clicked',
  failed: 'given up',
  suppressed: 'not written to, as an address on the suppression list is not',
} as const

export type SimulatorName = keyof typeof simulatorStories
