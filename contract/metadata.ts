import { z } from 'zod'
import { record, text } from './fields.ts'

/** How much metadata an object may carry. */
const metadataLimits = { pairs: 20, nameCharacters: 40, valueCharacters: 500 } as const

const { pairs, nameCharacters, valueCharacters } = metadataLimits

const pairsOfText = record(text(valueCharacters), {
  maxEntries: pairs,
  fault: `must be at most ${pairs} pairs`,
  maxNameCharacters: nameCharacters,
  nameFault: `must have a name of at most ${nameCharacters} characters`,
  // In a query a name stands between brackets.
  name: text(nameCharacters)
    .min(1)
    .regex(/^[^[\]]*$/, 'must have a name without square brackets'),
})

const limits = `At most ${pairs} pairs; names of 1 to ${nameCharacters} characters without square brackets, values of at most ${valueCharacters}.`

/** Pairs of text a client keeps with an object. */
export const metadata = pairsOfText.meta({
  description: `Pairs of text of your own, such as the id of your customer. ${limits}`,
  example: { customer: '42' },
})

/** In a list: only what has all these pairs. */
export const metadataFilter = pairsOfText.optional().meta({
  description: 'Only those that have all of these pairs: `metadata[customer]=42`.',
})

/** As it is shown. */
export const shownMetadata = z.record(z.string(), z.string()).meta({ description: 'Your own pairs; empty: none.' })

/** Query parameters that are given as `name[key]=value`: style `deepObject` of OpenAPI. */
export const deepParameters: readonly string[] = ['metadata', 'columns']
