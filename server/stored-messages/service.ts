import type { CapturedMessage, CapturedMessageWithContent } from '../../contract/captured-messages.ts'
import type { InboundMessage, InboundMessageWithContent } from '../../contract/inbound-messages.ts'
import type { Page } from '../../contract/pagination.ts'
import type { StoredMessageListQuery } from '../../contract/stored-message.ts'
import type { Handle } from '../database/connection.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { StreamedText } from '../lib/streamed-text.ts'
import { notFound } from '../shared/errors.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Scope } from '../shared/scope.ts'
import { readHeading } from './parse.ts'
import {
  findMessage,
  largeMessage,
  type MessageRow,
  type MessageTable,
  readRest,
  readSlices,
  selectMessages,
} from './queries.ts'
import { readAside } from './read-in-thread.ts'

/** Messages that are kept for people to see. Every call is limited to one mode of one account. */
type StoredMessageService<Item, WithContent> = {
  /** Newest first. */
  list(handle: Handle, scope: Scope, query: StoredMessageListQuery): Promise<Page<Item>>
  /**
   * Throws `not_found`.
   *
   * @param enterLarge Awaited before much content is read: it stays in memory until it is written to the client.
   *   Default: not waited.
   */
  get(
    handle: Handle,
    scope: Scope,
    id: string,
    enterLarge?: () => Promise<void>,
  ): Promise<Omit<WithContent, 'source'> & { source: string | StreamedText }>
}

export type CapturedMessageService = StoredMessageService<CapturedMessage, CapturedMessageWithContent>
export type InboundMessageService = StoredMessageService<InboundMessage, InboundMessageWithContent>

/** What the capture transport has kept. */
export function createCapturedMessageService(): CapturedMessageService {
  return createMailbox({
    table: 'captured_messages',
    kind: 'capturedMessage',
    noun: 'captured message',
    more: () => ({}),
  })
}

/** What came back and was not understood. */
export function createInboundMessageService(): InboundMessageService {
  return createMailbox({
    table: 'inbound_messages',
    kind: 'inboundMessage',
    noun: 'inbound message',
    more: ({ reason }) => ({ reason: reason ?? '' }),
  })
}

/** Large messages whose content is in memory at once: it can be 64 MB, and is some times that while it is read. */
const largeAtOnce = 1

type MailboxOptions<More> = {
  table: MessageTable
  kind: 'capturedMessage' | 'inboundMessage'
  noun: string
  /** What messages of this table have beyond the others. */
  more: (row: MessageRow) => More
}

function createMailbox<More extends object>({ table, kind, noun, more }: MailboxOptions<More>) {
  const semaphore = createSemaphore(largeAtOnce)
  const summaryOf = (row: MessageRow) => ({ ...fieldsOf(row), ...more(row) })

  return {
    async list(handle: Handle, scope: Scope, { limit, cursor, emailId }: StoredMessageListQuery) {
      const after = decodeCursor(kind, cursor)
      const rows = await selectMessages(handle, table, scope, { emailId, after, limit: limit + 1 })
      const { data, nextCursor } = pageOfRows(rows, { limit, idOf: ({ id }) => id, toItem: (row) => row })
      const items = data.map(async (row) => ({ ...summaryOf(row), ...(await readHeading(row.content)) }))
      return { data: await Promise.all(items), nextCursor }
    },
    async get(handle: Handle, scope: Scope, id: string, enterLarge?: () => Promise<void>) {
      const row = await findMessage(handle, table, scope, id)
      if (row === undefined) throw notFound(noun, id)
      const { size } = row
      const isLarge = size > largeMessage
      if (isLarge) await enterLarge?.()
      const giveBack = isLarge ? await semaphore.acquire() : null
      try {
        const content = await readRest(handle, table, row)
        if (content === undefined) throw notFound(noun, id)
        // Before it is read, which may take it away.
        // Of a large one it is read again while it is written.
        const source = isLarge
          ? new StreamedText(() => base64InPieces(readSlices(handle, table, { id, size })))
          : content.toString('base64')
        return { ...summaryOf(row), ...(await readAside(content)), source }
      } finally {
        giveBack?.()
      }
    },
  }
}

async function* base64InPieces(slices: AsyncIterable<Buffer>): AsyncGenerator<string> {
  for await (const slice of slices) yield slice.toString('base64')
}

function fieldsOf({ id, mode, emailId, mailFrom, recipients, size, createdAt }: MessageRow) {
  return { id, mode, emailId, mailFrom, recipients, size, createdAt: createdAt.toISOString() }
}
