import { connect } from 'node:net'
import type { Exchange } from './answer-check.ts'
import { patienceMs } from './patience.ts'

/**
 * Writes bytes to the service as they are, and answers what came back until the service closed the
 * connection. Rejects after `patienceMs`.
 *
 * @param path Where the request is counted to in the published spec; '' where no request can be read.
 */
export function sendRaw(
  url: string,
  { bytes, path = '' }: { bytes: string | Buffer; path?: string },
): Promise<Exchange> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes))
    socket.setTimeout(patienceMs, () => socket.destroy(new Error('the service neither answered nor closed')))
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', reject)
    socket.on('end', () => {
      socket.end()
      resolve(parse(Buffer.concat(chunks).toString('utf8'), path))
    })
  })
}

function parse(text: string, path: string): Exchange {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1])
  if (Number.isNaN(status)) throw new Error(`the service answered no HTTP: ${text.slice(0, 200)}`)
  const headers = lines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  return { method: '', path, status, headers: Object.fromEntries(headers), body: rest.join('\r\n\r\n') }
}
