import { wellFormedString } from './fields.ts'
import { templateLimits } from './template-variables.ts'

/** A part of a message as it is written, with Liquid. */
export const source = (description: string) =>
  wellFormedString(templateLimits.sourceLength, {
    unit: 'octets',
    fault: `must be at most ${templateLimits.sourceLength} characters`,
  })
    .refine((value) => !value.includes('\u0000'), 'must not contain U+0000')
    .meta({
      description: `${description} Liquid. At most ${templateLimits.sourceLength / 2 ** 10} KiB.`,
      // Not a pattern that runs: looking for the one character is enough.
      pattern: '^[^\\u0000]*$',
    })
    .nullable()

/** MJML, in place of `html`. */
export const mjmlSource = source(
  'The message as MJML 5, in place of `html`, which it is compiled to when it is stored. Without `mj-include`. Null: without MJML; the HTML that it was compiled to stays.',
)
