import type { Socket } from 'node:net'

/**
 * Resolves when the connection is gone, whichever way it went. A server that closes while something it did not
 * read is still coming resets the connection, and `once(socket, 'close')` would reject with that reset.
 */
export async function whenClosed(socket: Socket): Promise<void> {
  socket.on('error', () => undefined)
  await new Promise<void>((resolve) => socket.once('close', () => resolve()))
}
