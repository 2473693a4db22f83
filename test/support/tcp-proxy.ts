import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A line to a server that can be cut and mended. */
export type TcpProxy = AsyncDisposable & {
  port: number
  /** Ends every connection and refuses new ones. */
  cut(): Promise<void>
  /** Lets connections through again, at the same port. */
  mend(): Promise<void>
  /** Takes connections and what is sent, and passes nothing on any more: the server seems to hang. */
  stall(): void
  /** The first bytes from each client: up to 64 KiB and one chunk, as Latin-1. */
  sent: readonly string[]
}

type Address = { host: string; port: number }

/** @param at Where it listens. Default: any free port of 127.0.0.1. */
export async function startTcpProxy(target: Address, at: Address = { host: '127.0.0.1', port: 0 }): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  const sent: string[] = []
  let stalled = false

  function pass(client: Socket): void {
    const server = connect(target)
    const index = sent.push('') - 1
    client.on('data', (bytes) => {
      const before = sent[index] ?? ''
      if (before.length < 65_536) sent[index] = before + bytes.toString('latin1')
    })
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
      if (!stalled) socket.pipe(other)
    }
  }

  async function listen(port: number): Promise<Server> {
    const server = createServer(pass).listen(port, at.host)
    await once(server, 'listening')
    return server
  }

  async function close(): Promise<void> {
    if (!server.listening) return
    server.close()
    for (const socket of sockets) socket.resetAndDestroy()
    await once(server, 'close')
  }

  let server = await listen(at.port)
  const { port } = server.address() as AddressInfo
  return {
    port,
    sent,
    cut: close,
    stall() {
      stalled = true
      for (const socket of sockets) socket.unpipe().resume()
    },
    async mend() {
      server = await listen(port)
    },
    [Symbol.asyncDispose]: close,
  }
}
