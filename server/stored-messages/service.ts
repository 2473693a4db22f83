import type { CapturedMessage, CapturedMessageWithContent } from '../../contract/captured-messages.ts'
import type { InboundMessage, InboundMessageWithContent } from '../../contract/inbound-messages.ts'
import type { Page } from '../../contract/pagination.ts'
import type { StoredMessageListQuery } from '../../contract/stored-message.ts'
import type { Handle } from '../database/connection.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { type StreamedText, streamedBase64 } from '../lib/streamed-text.ts'
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
import { readInThread } from './read-in-thread.ts'

/** Stored messages that people can read. Every call is limited to one mode of one account. */
type StoredMessageService<Item, WithContent> = {
  /** Returns a page of messages, newest first. */
  list(handle: Handle, scope: Scope, query: StoredMessageListQuery): Promise<Page<Item>>
  /**
   * Returns a message with its content. Throws `not_found`.
   *
   * @param enterLarge Awaited before the content of a large message is read, which stays in memory until it is sent to
   *   the client. Default: no waiting.
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

/** Creates the service for the messages of the capture transport. */
export function createCapturedMessageService(): CapturedMessageService {
  return createMailbox({
    table: 'captured_messages',
    kind: 'capturedMessage',
    noun: 'captured message',
    more: () => ({}),
  })
}

/** Creates the service for the messages that came back and were not understood. */
export function createInboundMessageService(): InboundMessageService {
  return createMailbox({
    table: 'inbound_messages',
    kind: 'inboundMessage',
    noun: 'inbound message',
    more: ({ reason }) => ({ reason: reason ?? '' }),
  })
}

/** Maximum large messages in memory at once. A message can have 64 MB, and parsing takes several times as much. */
const largeAtOnce = 1

type MailboxOptions<More> = {
  table: MessageTable
  kind: 'capturedMessage' | 'inboundMessage'
  noun: string
  /** Returns the additional fields of messages in this table. */
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
      const release = isLarge ? await semaphore.acquire() : null
      try {
        const content = await readRest(handle, table, row)
        if (content === undefined) throw notFound(noun, id)
        // Encode the source before parsing, which may transfer the buffer to a thread. The source of a large message is
        // read again from the database while it is sent.
        const source = isLarge
          ? streamedBase64(() => readSlices(handle, table, { id, size }))
          : content.toString('base64')
        return { ...summaryOf(row), ...(await readInThread(content)), source }
      } finally {
        release?.()
      }
    },
  }
}

function fieldsOf({ id, mode, emailId, mailFrom, recipients, size, createdAt }: MessageRow) {
  return { id, mode, emailId, mailFrom, recipients, size, createdAt: createdAt.toISOString() }
}
