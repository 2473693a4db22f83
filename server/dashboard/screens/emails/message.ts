import type { Operation, Result } from '../../api/client.ts'

/** An operation that reads one file of a message. */
export type FileOperation = Extract<Operation, `GET ${string}/attachments/:index`>

export type MessageFile = Pick<Result<FileOperation>, 'filename' | 'contentType' | 'contentId' | 'size'>

/** The fields that emails, captured and inbound messages have in common. */
export type Message = {
  id: string
  html: string | null
  text: string | null
  attachments: readonly MessageFile[]
  /** Reads one of its files, by its place in `attachments`. Null: its files are only in its source. */
  fileOperation: FileOperation | null
}
