import type {
  CapturedMessage,
  CapturedMessageListQuery,
  CapturedMessageWithContent,
} from '../../contract/captured-messages.ts'
import type { InboundMessage, InboundMessageWithContent } from '../../contract/inbound-messages.ts'
import type { Page } from '../../contract/pagination.ts'
import type { MessageAttachmentWithContent, StoredMessageListQuery } from '../../contract/stored-message.ts'
import { sliceBytes } from '../database/bytea-slices.ts'
import type { Handle } from '../database/connection.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { type StreamedText, streamedBase64 } from '../lib/streamed-text.ts'
import { brokenRule, notFound } from '../shared/errors.ts'
import { decodeCursor, encodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Scope } from '../shared/scope.ts'
import { type Heading, readHeading } from './parse.ts'
import {
  deleteMessage,
  deleteMessages,
  findMessage,
  largeMessage,
  type MessageRow,
  type MessageTable,
  readRest,
  readSlices,
  selectMessages,
} from './queries.ts'
import { readAttachmentInThread, readInThread } from './read-in-thread.ts'
import { fitsSearch, searchKeyOf } from './search.ts'

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

export type CapturedMessageService = Pick<StoredMessageService<CapturedMessage, CapturedMessageWithContent>, 'get'> & {
  /**
   * Returns a page of messages, newest first. With `search`, it looks at a bounded number of messages: a page can have
   * fewer than `limit` without being the last. Throws `rule_violation` for a search without a visible character.
   */
  list(handle: Handle, scope: Scope, query: CapturedMessageListQuery): Promise<Page<CapturedMessage>>
  /** Returns the attachment at an index, with what is in it. Throws `not_found`. `enterLarge`: as in `get`. */
  getAttachment(
    handle: Handle,
    scope: Scope,
    at: { id: string; index: number },
    enterLarge?: () => Promise<void>,
  ): Promise<Omit<MessageAttachmentWithContent, 'content'> & { content: string | StreamedText }>
  /** Deletes a message. Throws `not_found`. */
  delete(handle: Handle, scope: Scope, id: string): Promise<void>
  /** Deletes all messages of the mode. */
  deleteAll(handle: Handle, scope: Scope): Promise<void>
}
export type InboundMessageService = StoredMessageService<InboundMessage, InboundMessageWithContent>

/** Creates the service for the messages of the capture transport. */
export function createCapturedMessageService(): CapturedMessageService {
  const table = 'captured_messages'
  const noun = 'captured message'
  const mailbox = createMailbox({ table, kind: 'capturedMessage', noun, more: () => ({}) })
  return {
    get: mailbox.get,
    getAttachment: mailbox.getAttachment,
    list: (handle, scope, { search, ...query }) =>
      search === undefined ? mailbox.list(handle, scope, query) : mailbox.search(handle, scope, { ...query, search }),
    async delete(handle, scope, id) {
      if (!(await deleteMessage(handle, table, scope, id))) throw notFound(noun, id)
    },
    deleteAll: (handle, scope) => deleteMessages(handle, table, scope),
  }
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

/** Messages that one page of a search looks at. The head of each is read and parsed. */
const searchedAtOnce = 100

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
  const withHeading = async (row: MessageRow) => ({ ...summaryOf(row), ...(await readHeading(row.content)) })

  /**
   * Calls `read` with the content of a message, a large one in its turn: one after the other, and as `enterLarge` says.
   * Throws `not_found`.
   */
  async function withContent<T>(
    handle: Handle,
    row: MessageRow,
    { enterLarge, read }: { enterLarge: (() => Promise<void>) | undefined; read: (content: Buffer) => Promise<T> },
  ): Promise<T> {
    if (row.size > largeMessage) await enterLarge?.()
    const release = row.size > largeMessage ? await semaphore.acquire() : null
    try {
      const content = await readRest(handle, table, row)
      if (content === undefined) throw notFound(noun, row.id)
      return await read(content)
    } finally {
      release?.()
    }
  }

  return {
    async list(handle: Handle, scope: Scope, { limit, cursor, emailId }: StoredMessageListQuery) {
      const after = decodeCursor(kind, cursor)
      const rows = await selectMessages(handle, table, scope, { emailId, after, limit: limit + 1 })
      const { data, nextCursor } = pageOfRows(rows, { limit, idOf: ({ id }) => id, toItem: (row) => row })
      return { data: await Promise.all(data.map(withHeading)), nextCursor }
    },
    async search(
      handle: Handle,
      scope: Scope,
      { limit, cursor, emailId, search }: StoredMessageListQuery & { search: string },
    ) {
      const key = searchKeyOf(search)
      if (key === '') throw brokenRule('query.search', 'must have a character that can be seen')
      const after = decodeCursor(kind, cursor)
      const rows = await selectMessages(handle, table, scope, { emailId, after, limit: searchedAtOnce + 1 })
      const data: (ReturnType<typeof summaryOf> & Heading)[] = []
      // One by one: to parse the heads of all at once would keep the event loop.
      for (const [index, row] of rows.entries()) {
        if (index === searchedAtOnce || data.length === limit) {
          return { data, nextCursor: encodeCursor(rows[index - 1]?.id ?? row.id) }
        }
        const message = await withHeading(row)
        if (fitsSearch(message, key)) data.push(message)
      }
      return { data, nextCursor: null }
    },
    async get(handle: Handle, scope: Scope, id: string, enterLarge?: () => Promise<void>) {
      const row = await findMessage(handle, table, scope, id)
      if (row === undefined) throw notFound(noun, id)
      const { size } = row
      return withContent(handle, row, {
        enterLarge,
        async read(content) {
          // Encode the source before parsing, which may transfer the buffer to a thread. The source of a large message
          // is read again from the database while it is sent.
          const source =
            size > largeMessage
              ? streamedBase64(() => readSlices(handle, table, { id, size }))
              : content.toString('base64')
          return { ...summaryOf(row), ...(await readInThread(content)), source }
        },
      })
    },
    async getAttachment(
      handle: Handle,
      scope: Scope,
      { id, index }: { id: string; index: number },
      enterLarge?: () => Promise<void>,
    ) {
      const row = await findMessage(handle, table, scope, id)
      if (row === undefined) throw notFound('attachment', `${id}/${index}`)
      return withContent(handle, row, {
        enterLarge,
        async read(message) {
          const found = await readAttachmentInThread(message, index)
          if (found === null) throw notFound('attachment', `${id}/${index}`)
          const { content, ...described } = found
          const isLarge = content.length > largeMessage
          return {
            ...described,
            content: isLarge ? streamedBase64(() => slicesOf(content)) : content.toString('base64'),
          }
        },
      })
    },
  }
}

async function* slicesOf(content: Buffer): AsyncGenerator<Buffer> {
  for (let from = 0; from < content.length; from += sliceBytes) yield content.subarray(from, from + sliceBytes)
}

function fieldsOf({ id, mode, emailId, mailFrom, recipients, size, createdAt }: MessageRow) {
  return { id, mode, emailId, mailFrom, recipients, size, createdAt: createdAt.toISOString() }
}
