import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { contract } from '../../contract/index.ts'
import { setPortalCustomer } from '../../server/http/caller.ts'
import { limitCallers } from '../../server/http/limit-callers.ts'

test('all customers of an account share 3,000 requests a minute in the portal, beside 300 of each', async () => {
  const clock = { now: () => new Date('2026-03-01T09:30:15Z') }
  const gate = limitCallers({ clock, byKey: () => expect.unreachable('the request has no key') })
  const app = express()
  // One request that stands for many: the gate counts each call.
  app.get('/', (request, res) => {
    const req = Object.assign(request, { tsRestRoute: { metadata: contract.webhooks.list.metadata } })
    const taken = (accountId: string, customer: string) => {
      const id = exampleId('portalSession')
      const shown = { mode: 'live', customer, eventTypes: null, permissions: [] } as const
      const theme = { accentColor: null, colorScheme: 'auto' } as const
      const access = { id, ...shown, permissions: [], theme, expiresAt: clock.now().toISOString() }
      setPortalCustomer(req, { ...shown, sessionId: id, plan: 'free', accountId, access })
      try {
        void gate(req, res, () => undefined)
        return null
      } catch (error) {
        return [String(Object(error).message).split(' that ')[0], res.getHeader('x-ratelimit-limit')]
      }
    }
    const [ours, theirs] = [exampleId('account'), `${exampleId('account').slice(0, -1)}z`]
    // Requests of one customer beyond its own limit do not count for all.
    const own = Array.from({ length: 310 }, () => taken(ours, '0')).at(-1)
    for (let number = 300; number < 3_000; number++) taken(ours, String(Math.floor(number / 300)))
    res.json({ own, last: taken(ours, 'a new one'), theirs: taken(theirs, '0') })
  })
  const server = createServer(app).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    expect(await (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })).json()).toEqual({
      own: ['You have sent the 300 requests', 300],
      last: ['All portals have sent the 3000 requests', 3_000],
      theirs: null,
    })
  } finally {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
})
