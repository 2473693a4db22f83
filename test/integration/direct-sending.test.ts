import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { readConfig } from '../../server/config/config.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { publish } from '../support/worlds/domains.ts'

/*
 * Straight to the recipients' servers, as an operator has it with `MAIL_TRANSPORT=direct`: a domain verified by its
 * records, servers found by theirs, on the port they all have, and a webhook that is told. Beside loopback's usual
 * address, where a mail server of this machine may be.
 */

const [firstHost, secondHost, deadHost] = ['127.0.25.1', '127.0.25.2', '127.0.25.3'] as const
const port = 25

/** Below 1024 not everybody may listen. */
const mayListen = await new Promise<boolean>((resolve) => {
  const server = createServer()
  server.once('error', () => resolve(false))
  server.listen(port, firstHost, () => server.close(() => resolve(true)))
})

describe.skipIf(!mayListen)('an email to domains with servers of their own', () => {
  let dns: DnsServer
  let [first, second]: ScriptedSmtp[] = []
  let receiver: Receiver
  let service: TestService

  beforeAll(async () => {
    dns = await startDnsServer()
    first = await startScriptedSmtp({ host: firstHost, port })
    second = await startScriptedSmtp({ host: secondHost, port, tls: 'self-signed' })
    receiver = await startReceiver()
    const { mail } = readConfig({
      MAIL_TRANSPORT: 'direct',
      MAIL_HOSTNAME: 'mail.postern.example',
      MAIL_DNS_SERVERS: dns.address,
      MAIL_ALLOW_PRIVATE_NETWORKS: 'true',
    })
    service = await startTestService({ mail })
  })
  afterAll(async () => {
    await service?.stop()
    await receiver?.stop()
    await Promise.all([first?.stop(), second?.stop()])
    await dns?.stop()
  })

  test('an email to domains with servers of their own reaches each, and its events say how', async () => {
    const { client } = service
    const domain = await client.succeed(contract.domains.create, { body: { name: 'shop.example' } })
    publish(dns, domain)
    const checked = await client.succeed(contract.domains.verify, { params: { id: domain.id }, body: {} })
    expect(checked.status).toBe('verified')

    dns.set('first.example', { MX: [{ exchange: 'mx.first.example', priority: 10 }] })
    dns.set('mx.first.example', [firstHost])
    // The server it prefers is away.
    dns.set('second.example', {
      MX: [
        { exchange: 'away.second.example', priority: 5 },
        { exchange: 'mx.second.example', priority: 10 },
      ],
    })
    dns.set('away.second.example', [deadHost])
    dns.set('mx.second.example', [secondHost])
    dns.set('none.example', { MX: [{ exchange: '', priority: 0 }] })
    first?.at('rcpt', ({ argument }) => (argument.startsWith('gone@') ? '550 5.1.1 No such user' : undefined))

    const events = ['email.delivered', 'email.bounced'] as const
    await client.succeed(contract.webhooks.create, { body: { url: receiver.url, events: [...events] } })
    const { id } = await client.succeed(contract.emails.send, {
      body: {
        from: 'hello@shop.example',
        to: ['ada@first.example', 'gone@first.example', 'bob@second.example', 'cyd@none.example'],
        subject: 'Hello',
        text: 'Hello',
      },
    })

    await receiver.received(4)
    const { recipients } = await client.succeed(contract.emails.get, { params: { id } })
    expect(Object.fromEntries(recipients.map(({ address, status }) => [address, status]))).toEqual({
      'ada@first.example': 'delivered',
      'gone@first.example': 'bounced',
      'bob@second.example': 'delivered',
      'cyd@none.example': 'bounced',
    })
    const told = receiver.requests.map(({ body }) => JSON.parse(String(body)))
    expect(told.map(({ type }) => type).toSorted()).toEqual([...Array(2).fill(events[1]), ...Array(2).fill(events[0])])
    expect(first?.messages.map(({ recipients }) => recipients.map(({ address }) => address))).toEqual([
      ['ada@first.example'],
    ])
    expect(second?.messages.map(({ isSecure }) => isSecure)).toEqual([true])
    expect(first?.commands[0]?.line).toBe('EHLO mail.postern.example')
  })
})
