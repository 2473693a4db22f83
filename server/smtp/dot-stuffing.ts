const lineFeed = 0x0a
const dot = Buffer.from('.')
const lineEnd = Buffer.from('\r\n')
const lineFeedAndDot = Buffer.from('\n.')
const end = Buffer.from('.\r\n')

/** The end of a message that has nothing in it. */
export const noData = '.\r\n'

/**
 * A message as it is sent after DATA, with its end: a dot before each that begins a line (RFC 5321 §4.5.2).
 * A bare line feed counts as the end of a line here, so that no server, whatever it takes for one, can see
 * the end of the message before it comes.
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
