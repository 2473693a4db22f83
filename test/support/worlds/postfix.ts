import { createHmac } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { DomainRecord } from '../../../contract/domains.ts'
import type { EmailDetails } from '../../../contract/email-resource.ts'
import { type EventTypeName, eventType, eventTypeNames } from '../../../contract/event-types.ts'
import { contract } from '../../../contract/index.ts'
import { freePort } from '../../../scripts/support/free-port.ts'
import { openDnsPort } from '../../postfix/dns-port.ts'
import { type Postfix, startPostfix } from '../../postfix/postfix.ts'
import { type RecipientsServer, startRecipientsServer } from '../../postfix/recipients-server.ts'
import type { DnsRecords } from '../dns-packets.ts'
import { type DnsServer, startDnsServer } from '../dns-server.ts'
import { patienceMs } from '../patience.ts'
import { startReceiver } from '../receiver.ts'
import { startTestService, type TestService } from '../service.ts'

const senderDomain = 'sender.test'
/** Its addresses are those of the mail server of the recipients. */
export const recipientsDomain = 'recipients.test'
/** Its addresses have a mailbox of Postfix itself. */
export const mailboxDomain = 'mailbox.test'
/** Postfix knows that there is no such domain. */
export const goneDomain = 'gone.test'

/** Domains that Postfix asks the DNS of. What is not said of them there, does not exist. */
const askedDomains = {
  'nowhere.test': null,
  'silent.test': { TXT: ['Nobody takes mail here.'] },
  'null-mx.test': { MX: [{ exchange: '', priority: 0 }] },
  'bad-mx.test': { MX: [{ exchange: 'mx.nowhere.test', priority: 10 }] },
  'failing.test': 'failure',
} as const

/** The service with Postfix as its relay, which brings back to it what becomes of messages. */
export type World = AsyncDisposable & {
  service: TestService
  postfix: Postfix
  recipients: RecipientsServer
  /** Where the records of the sending domain are. */
  dnsServer: string
  /** The event of this type about this recipient, once it has arrived, with its signature verified. */
  event(type: EventTypeName, to: string): Promise<Record<string, unknown>>
  send(to: string[]): Promise<string>
  email(id: string): Promise<EmailDetails>
  /** The same, once its timeline has an entry of this type for this recipient; for what no event tells. */
  emailWith(id: string, type: string, to: string): Promise<EmailDetails>
}

export async function startWorld(): Promise<World> {
  await using starting = new AsyncDisposableStack()
  const dns = starting.use(await startDnsServer())
  const recipients = starting.use(await startRecipientsServer())
  const inboundPort = await freePort()
  for (const [domain, records] of Object.entries(askedDomains)) if (records !== null) dns.set(domain, records)
  const dnsPort = starting.use(await openDnsPort(dns.address))
  const lookups = Object.keys(askedDomains).map((domain) => [domain, `lookup:${domain}:25`])
  const postfix = starting.use(
    await startPostfix({
      transports: {
        [`send.${senderDomain}`]: `smtp:[127.0.0.1]:${inboundPort}`,
        [recipientsDomain]: `smtp:[127.0.0.1]:${recipients.port}`,
        [mailboxDomain]: 'virtual:',
        [goneDomain]: 'error:5.1.2 There is no such domain',
        ...Object.fromEntries(lookups),
      },
      nameServer: dnsPort.host,
      retryMs: 1_000,
    }),
  )
  const service = starting.use(
    await startTestService({
      mail: {
        transport: 'relay',
        relay: { host: '127.0.0.1', port: postfix.port, tls: 'opportunistic', credentials: null },
        dnsServers: [dns.address],
        inbound: { host: '127.0.0.1', port: inboundPort, tls: null },
      },
    }),
  )
  const { client } = service
  const receiver = starting.use(await startReceiver())
  const events = eventTypeNames.filter((name) => name.startsWith('email.'))
  const { secret } = await client.succeed(contract.webhooks.create, { body: { url: receiver.url, events } })
  await verifyDomain(service, dns)
  const running = starting.move()

  function received() {
    return receiver.requests.map(({ headers, body }) => {
      const signature = createHmac('sha256', secret).update(body).digest('hex')
      if (headers['x-service-signature'] !== signature) throw new Error('the signature of an event is not right')
      return anyEvent.parse(JSON.parse(body.toString()))
    })
  }

  const email = (id: string) => client.succeed(contract.emails.get, { params: { id } })

  async function logged(): Promise<string> {
    return `Postfix logged last:\n${(await postfix.log()).split('\n').slice(-30).join('\n')}`
  }

  return {
    service,
    postfix,
    recipients,
    dnsServer: dns.address,
    async event(type, to) {
      for (;;) {
        const found = received().find((event) => event.type === type && event.data.to === to)
        if (found !== undefined) return eventType(type).body.parse(found).data as Record<string, unknown>
        await receiver.received(receiver.requests.length + 1).catch(async (error: Error) => {
          throw new Error(`no ${type} about ${to}: ${error.message}; ${await logged()}`)
        })
      }
    },
    async send(to) {
      const body = { from: `Ada <ada@${senderDomain}>`, to, subject: 'Grüße', text: 'It is good to have you here.' }
      return (await client.succeed(contract.emails.send, { body })).id
    },
    email,
    async emailWith(id, type, to) {
      for (const deadline = Date.now() + patienceMs; ; await delay(50)) {
        const found = await email(id)
        if (found.timeline.some((entry) => entry.type === type && entry.recipient === to)) return found
        if (Date.now() < deadline) continue
        throw new Error(`no ${type} of ${to} in ${JSON.stringify(found.timeline)}; ${await logged()}`)
      }
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

const anyEvent = z.looseObject({ type: z.string(), data: z.looseObject({ to: z.string() }) })

/** Publishes what the service asks for, and has it looked up. */
async function verifyDomain({ client }: TestService, dns: DnsServer): Promise<void> {
  const { id, records } = await client.succeed(contract.domains.create, { body: { name: senderDomain } })
  for (const name of new Set(records.map((record) => record.name))) {
    dns.set(name, dnsRecords(records.filter((record) => record.name === name)))
  }
  const { status } = await client.succeed(contract.domains.verify, { params: { id }, body: {} })
  if (status !== 'verified') throw new Error(`the domain is ${status}`)
}

function dnsRecords(records: readonly DomainRecord[]): DnsRecords {
  return {
    TXT: records.filter(({ type }) => type === 'TXT').map(({ value }) => value),
    MX: records
      .filter(({ type }) => type === 'MX')
      .map(({ value, priority }) => ({ exchange: value, priority: priority ?? 0 })),
  }
}
