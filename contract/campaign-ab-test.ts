import { z } from 'zod'
import { emailLine } from './email-content.ts'
import { line, list, timestamp } from './fields.ts'
import { idSchema } from './ids.ts'

/*
 * A/B tests of campaigns: variants of the message go to a share of the people, and the one that does best to the rest.
 */

export const abTestLimits = {
  variants: { min: 2, max: 5 },
  nameCharacters: 50,
  hours: 168,
  /** Hours between the last test email and the choice of the winner, if nothing else is said. */
  defaultHours: 24,
} as const

const { variants: count, nameCharacters, hours: maxHours, defaultHours } = abTestLimits

/** The name of a variant, by which it is chosen. */
export const variantName = line(nameCharacters).min(1)

const share = z.int().min(1).max(100).meta({
  description:
    'The share of the people who get a variant in the test, in percent. It is divided evenly, by chance. 100: everybody, and there is no rest that a winner could be sent to.',
})

const winnerBy = z.enum(['opens', 'clicks', 'manual']).meta({
  id: 'AbTestWinnerBy',
  description:
    'How the winner is chosen. `opens`: by the share of its people who opened it, without machines; needs `trackOpens`. `clicks`: the same of those who clicked a link; needs `trackClicks`. `manual`: by `POST …/winner`.',
})

const variantSubject = emailLine('What it is about. Liquid. Null, the default: the subject of the campaign.').nullable()

/**
 * Returns the schemas of A/B tests.
 *
 * @param content The message as it is written, and as it is shown.
 */
export function abTestSchemas<Written extends z.ZodType, Shown extends z.ZodType>(content: {
  written: Written
  shown: Shown
}) {
  const variant = z
    .strictObject({
      name: variantName.meta({ description: 'What it is called, and chosen by. No two may have the same.' }),
      subject: variantSubject.optional(),
      content: content.written
        .nullable()
        .optional()
        .meta({ description: 'Its message as a whole. Null, the default: that of the campaign.' }),
      templateId: idSchema(
        'template',
        'The template that is its message, in place of `content`; its subject is not used. The published version is copied when the campaign is sent, with the `variables` of the campaign and its own fallbacks. Null, the default: none.',
      )
        .nullable()
        .optional(),
    })
    .meta({
      id: 'AbTestVariant',
      description: 'A variant of the message. What it does not say is as in the campaign.',
      example: { name: 'B', subject: 'Spring is here, at last' },
    })
  const example = { share: 20, winnerBy: 'opens' as const, hours: 4 }
  const written = z
    .strictObject({
      share,
      winnerBy,
      hours: z
        .int()
        .min(1)
        .max(maxHours)
        .optional()
        .meta({
          description: `Hours from the last email of the test to the choice of the winner. Default: ${defaultHours}. Not with \`manual\`.`,
        }),
      variants: list(variant, {
        ...count,
        fault: `must be at most ${count.max} variants`,
        minFault: `must be at least ${count.min} variants`,
      }).meta({ description: 'In their order: of those that do equally well, the first wins.' }),
    })
    .meta({
      id: 'AbTest',
      description: 'Variants of the message, which of the people get them, and how the winner is chosen.',
      example: { ...example, variants: [{ name: 'A' }, { name: 'B', subject: 'Spring is here, at last' }] },
    })
  const shownVariant = {
    name: z.string(),
    subject: z.string().nullable().meta({ description: 'Null: that of the campaign.' }),
  }
  const shownFields = {
    share: z.int(),
    winnerBy,
    hours: z.int().nullable().meta({ description: 'Null: the winner is chosen by hand.' }),
    winner: z
      .string()
      .nullable()
      .meta({ description: 'The variant that goes to the rest. Null: none is chosen, or nobody was left for it.' }),
    decidedAt: timestamp.nullable().meta({ description: 'When the winner was chosen.' }),
  }
  const undecided = { winner: null, decidedAt: null }
  const meaning = 'The A/B test of a campaign'
  const summary = z.object({ ...shownFields, variants: z.array(z.object(shownVariant)) }).meta({
    id: 'CampaignAbTest',
    description: `${meaning}.`,
    example: { ...example, ...undecided, variants: [{ name: 'A', subject: null }] },
  })
  const details = z
    .object({
      ...shownFields,
      variants: z.array(
        z.object({
          ...shownVariant,
          content: content.shown
            .nullable()
            .meta({ description: 'Null: that of the campaign, or of its template, which was not copied yet.' }),
          templateId: idSchema('template', 'Its template. It may be deleted. Null: it has none of its own.').nullable(),
          templateVersion: z.int().nullable().meta({
            description: 'The version of its template that was copied when the campaign was sent. Null: none.',
          }),
        }),
      ),
    })
    .meta({
      id: 'CampaignAbTestDetails',
      description: `${meaning}, with the content of its variants.`,
      example: {
        ...example,
        ...undecided,
        variants: [{ name: 'A', subject: null, content: null, templateId: null, templateVersion: null }],
      },
    })
  return { written, summary, details }
}
