import { z } from 'zod'
import { record, text } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'

/** How much a template may be. */
export const templateLimits = {
  /** Templates of an account. */
  templates: 1_000,
  /** Versions of a template that are kept. */
  versions: 100,
  subjectCharacters: 1_000,
  preheaderCharacters: 500,
  /** Of HTML and of text, each. */
  sourceLength: 524_288,
  variables: 50,
  fallbackCharacters: 500,
  /** Of the values of one email, as JSON. */
  valuesBytes: 65_536,
} as const

const nameFault = 'must have a name of at most 50 characters'

/** The values of the variables of a template, for one message. */
export const templateVariables = record(z.unknown(), {
  maxEntries: templateLimits.variables,
  fault: `must be at most ${templateLimits.variables} variables`,
  maxNameCharacters: 50,
  nameFault,
}).meta({
  description: `Values by the name of their variable: text, numbers, true and false, lists and objects. At most ${templateLimits.valuesBytes / 2 ** 10} KiB as JSON.`,
  example: { firstName: 'Ada' },
})

/** The value of a variable where none is given. */
export const fallbackValue = z.union(
  [text(templateLimits.fallbackCharacters), z.number(), z.boolean()],
  `must be a text of at most ${templateLimits.fallbackCharacters} characters, a number, or true or false`,
)

const givenFallback = fallbackValue.meta({
  id: 'ContentFallback',
  description: `A fallback of content: a text of at most ${templateLimits.fallbackCharacters} characters, a number, or true or false.`,
})
const shownFallback = z
  .union([z.string(), z.number(), z.boolean()])
  .meta({ id: 'ContentFallbackValue', description: 'A fallback of content: text, a number, or true or false.' })

/** Values for variables that are not given, as a template declares them. */
export const givenFallbacks = record(givenFallback, {
  maxEntries: templateLimits.variables,
  fault: `must be at most ${templateLimits.variables} fallbacks`,
  maxNameCharacters: 50,
  nameFault,
}).meta({
  description: `Values for names that \`variables\` does not give, at most ${templateLimits.variables}. A copy of a campaign has those of a template that was deleted.`,
  example: { greeting: 'Hello' },
})

export const shownFallbacks = z.record(z.string(), shownFallback)

/** The template of an email, in place of its content. */
export const emailTemplate = z
  .strictObject({
    id: idSchema('template', 'The template. Its published version is used.'),
    variables: templateVariables.optional(),
  })
  .meta({
    id: 'EmailTemplate',
    description: 'A template, in place of `subject`, `html` and `text`.',
    example: { id: exampleId('template'), variables: { firstName: 'Ada' } },
  })
