import { z } from 'zod'

export const pageSize = { default: 20, max: 100 } as const

/** The query fields of every list. */
export const pageQuery = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(pageSize.max)
    .default(pageSize.default)
    .meta({ description: 'How many to answer at most.', example: 20 }),
  cursor: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: 'The `nextCursor` of the page before. Opaque: do not build one.' }),
}

export type PageQuery = { limit: number; cursor?: string | undefined }

/** The answer of every list: one page, and where the next begins (`null` at the end). */
export function pageOf<T extends z.ZodType>(item: T, id: string) {
  const example = { data: [item.meta()?.example], nextCursor: 'MDFqcXo0eDdtOGU1djl0Mms2cjN3MHkxYWI' }
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
