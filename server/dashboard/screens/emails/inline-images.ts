import { skipToken, useQuery } from '@tanstack/react-query'
import { useScope } from '../../api/scope.tsx'
import type { FileOperation, Message, MessageFile } from './message.ts'

/** Types of images that a browser shows without running anything. */
const types: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
/** Most images that a preview shows, and bytes of all of them. Others stay empty. */
const maxImages = 20
const maxBytes = 5_000_000

/** Inline images as `data:` URLs, by their content id. */
export type InlineImages = ReadonlyMap<string, string>

/** Of a message without inline images. */
export const noImages: InlineImages = new Map()

/** Returns the numbers of the attachments that a preview shows: the first ones that are images, up to the limits. */
function shownInline(attachments: readonly MessageFile[]): number[] {
  let bytes = 0
  const shown: number[] = []
  for (const [index, { contentId, contentType, size }] of attachments.entries()) {
    if (contentId === null || !types.has(contentType) || bytes + size > maxBytes || shown.length === maxImages) continue
    bytes += size
    shown.push(index)
  }
  return shown
}

/** Reads the inline images of a message, where its files can be read. None until all are read. */
export function useInlineImages({ id, attachments, fileOperation }: Message): InlineImages {
  const { call, accountId, mode } = useScope()
  const indexes = shownInline(attachments)
  const readEach = async (operation: FileOperation): Promise<InlineImages> => {
    const read = indexes.map(async (index) => {
      const params = { id, index: String(index) }
      const { contentId, contentType, content } = await call(operation, { params })
      return [String(contentId), `data:${contentType};base64,${content}`] as const
    })
    return new Map(await Promise.all(read))
  }
  const { data = noImages } = useQuery({
    queryKey: [accountId, mode, 'inline images', id],
    // They never change.
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: fileOperation === null || indexes.length === 0 ? skipToken : () => readEach(fileOperation),
  })
  return data
}
