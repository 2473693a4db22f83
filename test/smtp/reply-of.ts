import { type Reply, ReplyReader } from '../../server/smtp/reply.ts'

/** A reply from its text, lines apart by `\n`. */
export function replyOf(text: string): Reply {
  const [reply] = new ReplyReader().push(Buffer.from(`${text.replaceAll('\n', '\r\n')}\r\n`))
  if (reply === undefined) throw new Error('the reply is not complete')
  return reply
}
