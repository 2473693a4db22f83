import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type RequestHandler } from 'express'
import { expect, test } from 'vitest'
import { createResourceRouter } from '../../server/http/resource-router.ts'

test('a request is compared with the routes of its resource, in their order, and then goes on', async () => {
  const compared: string[] = []
  const passes =
    (name: string): RequestHandler =>
    (_req, _res, next) => {
      compared.push(name)
      next()
    }
  const router = createResourceRouter()
  router.all('/v1/webhooks', passes('all webhooks'))
  router.all('/v1/emails/batch', passes('batch'))
  router.get('/v1/emails/:id', (req, res) => void res.json({ path: req.route.path, id: req.params.id }))
  router.get('/v1/webhooks', passes('list of webhooks'))
  const app = express().use(router)
  app.use((req, res) => void res.json({ behind: req.path }))
  await using server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).json()

  expect(await get('/v1/emails/batch')).toEqual({ path: '/v1/emails/:id', id: 'batch' })
  expect(await get('/v1/emails/a%20b')).toEqual({ path: '/v1/emails/:id', id: 'a b' })
  expect(await get('/v1/webhooks?a=/v1/emails/x')).toEqual({ behind: '/v1/webhooks' })
  for (const path of ['/v1/webhooks/', '/v1/Webhooks', '/v1/unknown/a', '/v1', '/']) {
    expect(await get(path)).toEqual({ behind: path })
  }
  expect(compared).toEqual(['batch', 'all webhooks', 'list of webhooks'])
})

test.each(['/v1/:kind', '/:version/webhooks', '/v1/*rest', '/v1{/:kind}'])(
  'a route that does not begin with two segments of plain text is refused: %s',
  (path) => {
    expect(() => createResourceRouter().get(path, () => undefined)).toThrow('two segments of plain text')
  },
)
