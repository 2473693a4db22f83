import { z } from 'zod'

/** The kinds of keys, and of what they cause. */
export const modes = ['test', 'live'] as const

export type Mode = (typeof modes)[number]

export const mode = z.enum(modes).meta({
  id: 'Mode',
  description: '`live`: real sending. `test`: development. It is the kind of the key that caused it.',
})
