const lineFeed = 0x0a
const dot = Buffer.from('.')
const lineEnd = Buffer.from('\r\n')
const lineFeedAndDot = Buffer.from('\n.')
const end = Buffer.from('.\r\n')

/** The data of an empty message. */
export const noData = '.\r\n'

/**
 * Returns the bytes to send after DATA: the message with dot-stuffing (RFC 5321 §4.5.2) and its end marker. A bare
 * line feed counts as a line end here, so that a server which accepts it as one cannot see an early end of the message
 * (SMTP smuggling).
 */
export function dataOf(message: Buffer): Buffer {
  const pieces: Buffer[] = message[0] === dot[0] ? [dot] : []
  let start = 0
  for (let at = message.indexOf(lineFeedAndDot); at >= 0; at = message.indexOf(lineFeedAndDot, at + 1)) {
    pieces.push(message.subarray(start, at + 1), dot)
    start = at + 1
  }
  pieces.push(message.subarray(start))
  if (message.at(-1) !== lineFeed) pieces.push(lineEnd)
  return Buffer.concat([...pieces, end])
}
