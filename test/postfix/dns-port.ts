import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { rootCommand } from '../../scripts/support/postfix.ts'

/*
 * The C library asks name servers at port 53 alone, which only root may listen on. So this file is also a program,
 * run as root: it passes queries on to the name server of a test, until its stdin ends.
 */

const port = 53

/** A name server of a test, reached at port 53 of an address of loopback. */
export type DnsPort = AsyncDisposable & { host: string }

/** @param address Where queries are passed on to: host and port. */
export async function openDnsPort(address: string): Promise<DnsPort> {
  // Not one that a resolver of the machine listens on, and another one for each process of the tests.
  const host = `127.53.${(process.pid >> 8) & 255}.${process.pid & 255 || 1}`
  const [program, ...args] = rootCommand(process.execPath, [import.meta.filename, host, address])
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  await Promise.race([
    once(child.stdout, 'data'),
    exit.then(([code]) => {
      throw new Error(`port ${port} of ${host} could not be opened: the program ended with code ${code}`)
    }),
  ])
  return {
    host,
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await exit
    },
  }
}

if (import.meta.main) {
  const [host = '', address = ''] = process.argv.slice(2)
  const to = new URL(`dns://${address}`)
  const socket = createSocket('udp4')
  socket.on('message', (query, peer) => {
    const onward = createSocket('udp4')
    onward.once('message', (answer) => {
      socket.send(answer, peer.port, peer.address)
      onward.close()
    })
    onward.send(query, Number(to.port), to.hostname)
  })
  socket.bind(port, host, () => process.stdout.write('ready\n'))
  process.stdin.resume().once('end', () => process.exit())
}
