import { z } from 'zod'
import { boundedString, numberInText, timeInput } from './fields.ts'
import { exampleSuffix, idSuffix } from './ids.ts'

export const pageSize = { default: 20, max: 100 } as const

export const cursorFault = 'must be the `nextCursor` of a page of this list'

/** The query fields of every list. */
export const pageQuery = {
  limit: numberInText({ min: 1, max: pageSize.max })
    .default(pageSize.default)
    .meta({ description: 'How many to answer at most.', example: pageSize.default }),
  cursor: boundedString(exampleSuffix.length, { fault: cursorFault, isPublished: false })
    .regex(idSuffix, cursorFault)
    .optional()
    // No example: a list tried out with it would not be the list.
    .meta({ description: 'The `nextCursor` of the page before. Opaque: do not build one.' }),
}

/** The query fields of every list that is limited by time. */
export const timeFilters = {
  since: timeInput.optional().meta({ description: 'Only those created at or after this time.' }),
  until: timeInput.optional().meta({ description: 'Only those created before this time.' }),
}

export type PageQuery = { limit: number; cursor?: string | undefined }

/** The answer of every list: one page, and where the next begins (`null` at the end). */
export function pageOf<T extends z.ZodType>(item: T, id: string) {
  const example = { data: [item.meta()?.example], nextCursor: exampleSuffix }
  return z
    .object({
      data: z.array(item),
      nextCursor: z
        .string()
        .nullable()
        .meta({ description: 'Give it as `cursor` to get the next page; null on the last.' }),
    })
    .meta({ id, description: 'One page of a list, and where the next one begins.', example })
}

/** One page as the services hand it over. */
export type Page<T> = { data: T[]; nextCursor: string | null }
