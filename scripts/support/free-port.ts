import { once } from 'node:events'
import { createServer } from 'node:net'

/** Returns a port of 127.0.0.1 that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port of this machine is free')
  server.close()
  await once(server, 'close')
  return address.port
}
