import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'

const secret = process.env.WEBHOOK_SECRET
if (!secret) {
  console.error('Set WEBHOOK_SECRET to the secret of the webhook: whsec_…')
  process.exit(1)
}
const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
const seen = new Set()

function isGenuine(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers
  const ageSeconds = Math.abs(Date.now() / 1000 - Number(timestamp))
  if (!(ageSeconds <= 300)) return false // also where it is no number
  const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
  const expected = Buffer.from(`v1,${mac}`)
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

function handle(event) {
  console.log(event)
}

createServer(async (request, response) => {
  const body = await buffer(request).catch(() => Buffer.alloc(0)) // a request that broke off verifies as nothing
  const genuine = isGenuine(request.headers, body)
  response.writeHead(genuine ? 200 : 401).end()
  const id = request.headers['webhook-id']
  if (!genuine || seen.has(id)) return
  seen.add(id)
  handle(JSON.parse(body))
}).listen(process.env.PORT ?? 4000, '127.0.0.1')
