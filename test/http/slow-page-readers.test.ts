import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import express from 'express'
import { afterEach, expect, test } from 'vitest'
import type { WebPages } from '../../server/campaigns/web-pages.ts'
import { serveWebPages } from '../../server/http/web-pages.ts'

const ending = new AsyncDisposableStack()
afterEach(() => ending.disposeAsync())

test('a large page counts as read when its client has it or is cut off, and a small one at once', async () => {
  // More than the systems of both sides keep for a connection.
  const sizes: Record<string, number> = { small: 16 * 1024, large: 64 * 2 ** 20 }
  const sent: string[] = []
  const ofToken: WebPages['ofEmail'] = async (token, send) => {
    const html = 'x'.repeat(sizes[token] ?? 0)
    await send({ status: 'shown', subject: 'Spring', html, text: null, isIndexed: false })
    sent.push(token)
  }
  const app = express()
  serveWebPages(app, { ofEmail: ofToken, ofCampaign: ofToken }, { readWithinMs: 300 })
  const server = createServer(app).listen(0, '127.0.0.1')
  ending.defer(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const slow = connect({ port, host: '127.0.0.1' }).pause()
  ending.defer(() => void slow.destroy())
  slow.on('error', () => undefined)
  const cutOff = once(server, 'connection').then(([socket]) => once(socket, 'close'))
  slow.write('GET /w/large HTTP/1.1\r\nHost: shop.test\r\n\r\n')
  await once(server, 'request')
  const page = await fetch(`http://127.0.0.1:${port}/a/small`)
  expect(await page.text()).toHaveLength(16 * 1024)
  expect(sent).toEqual(['small'])
  await cutOff
  await new Promise((resolve) => setImmediate(resolve))
  expect(sent).toEqual(['small', 'large'])
})
