import { Resolver } from 'node:dns/promises'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { goneDomain, mailboxDomain, recipientsDomain, startWorld, type World } from '../support/worlds/postfix.ts'

/* A real MTA takes messages on, and tells by itself what becomes of them. */

let world: World

beforeAll(async () => {
  world = await startWorld()
})

afterAll(() => world?.[Symbol.asyncDispose]())

test('what reaches a mailbox is sent, then delivered, and its signatures verify', async () => {
  const to = `ada@${mailboxDomain}`
  const id = await world.send([to])
  await world.event('email.delivered', to)

  const email = await world.email(id)
  expect(email).toMatchObject({ status: 'delivered', recipients: [{ address: to, status: 'delivered' }] })
  expect(email.timeline.find(({ type }) => type === 'sent')).toMatchObject({
    recipient: to,
    reply: expect.stringMatching(/^250 2\.0\.0 Ok: queued as \w+$/),
  })

  const message = (await world.postfix.mailbox()).find((text) => text.includes(`\nDelivered-To: ${to}\n`))
  expect(await verdicts(message ?? '')).toEqual(['pass', 'pass'])
})

test('what comes back has bounced, and its address is not written to again', async () => {
  const to = `unknown@${recipientsDomain}`
  const id = await world.send([to])
  const diagnostic = expect.stringContaining('550 5.1.1 There is nobody of this name here')
  expect(await world.event('email.bounced', to)).toMatchObject({
    emailId: id,
    bounceType: 'hard',
    diagnosticCode: diagnostic,
  })

  const email = await world.email(id)
  expect(email).toMatchObject({ status: 'bounced', recipients: [{ address: to, status: 'bounced' }] })
  expect(email.timeline.find(({ type }) => type === 'bounced')).toMatchObject({ recipient: to, reply: diagnostic })
  const { data } = await world.service.client.succeed(contract.suppressions.list, { query: { address: to } })
  expect(data).toMatchObject([{ address: to, reason: 'hard_bounce', emailId: id }])

  const again = await world.send([to])
  expect(await world.event('email.failed', to)).toMatchObject({ emailId: again })
  expect(await world.email(again)).toMatchObject({ status: 'suppressed' })
})

test('what has to wait for room in a mailbox is late, and is taken when there is some', async () => {
  const to = `full@${recipientsDomain}`
  const id = await world.send([to])
  expect(await world.event('email.delivery_delayed', to)).toMatchObject({
    emailId: id,
    reason: expect.stringContaining('There is no room in the mailbox'),
  })

  await world.recipients.messageFor(to)
  // The server of the recipients tells nothing of delivery.
  const { status, timeline } = await world.emailWith(id, 'relayed', to)
  expect(status).toBe('sent')
  expect(timeline.map(({ type }) => type)).toEqual(['queued', 'sent', 'delayed', 'relayed'])
  expect(timeline.at(-1)).toMatchObject({ reply: expect.stringContaining('250 2.6.0 Taken') })
})

test('one message for several has for each what became of it there', async () => {
  const [bob, carol, eve] = [`bob@${recipientsDomain}`, `carol@${mailboxDomain}`, `eve@${goneDomain}`] as const
  const id = await world.send([bob, carol, eve])
  // Postfix refuses what it knows to be wrong.
  expect(await world.event('email.bounced', eve)).toMatchObject({
    bounceType: 'hard',
    diagnosticCode: expect.stringContaining('550 5.1.2'),
  })
  await world.event('email.delivered', carol)
  await world.emailWith(id, 'relayed', bob)

  expect(await verdicts(await world.recipients.messageFor(bob))).toEqual(['pass', 'pass'])
  const { status, recipients } = await world.email(id)
  expect(status).toBe('sent')
  expect(recipients.map(({ address, status }) => [address, status])).toEqual([
    [bob, 'accepted'],
    [carol, 'delivered'],
    [eve, 'bounced'],
  ])
})

test.each([
  ['that does not exist', 'nowhere.test', 'Host not found'],
  ['that has neither a mail server nor an address', 'silent.test', 'no data record of requested type'],
  ['that takes no mail (RFC 7505)', 'null-mx.test', 'does not accept mail (nullMX)'],
] as const)('what goes to a domain %s has bounced for good', async (_, domain, said) => {
  const to = `ada@${domain}`
  const emailId = await world.send([to])
  expect(await world.event('email.bounced', to)).toMatchObject({
    emailId,
    bounceType: 'hard',
    diagnosticCode: expect.stringContaining(said),
  })
  const { data } = await world.service.client.succeed(contract.suppressions.list, { query: { address: to } })
  expect(data).toMatchObject([{ address: to, reason: 'hard_bounce', emailId }])
})

test('what goes to a domain whose mail server does not exist has bounced, and the address is not to blame', async () => {
  const to = 'ada@bad-mx.test'
  await world.send([to])
  expect(await world.event('email.bounced', to)).toMatchObject({
    bounceType: 'soft',
    diagnosticCode: expect.stringContaining('Host not found'),
  })
  const { data } = await world.service.client.succeed(contract.suppressions.list, { query: { address: to } })
  expect(data).toEqual([])
})

test('what goes to a domain whose name servers fail is late', async () => {
  const to = 'ada@failing.test'
  await world.send([to])
  expect(await world.event('email.delivery_delayed', to)).toMatchObject({
    reason: expect.stringContaining('Host not found, try again'),
  })
})

/** Returns the verdicts of an independent verifier on the signatures of a message, by the published records. */
async function verdicts(message: string | Buffer): Promise<string[]> {
  const names = new Resolver()
  names.setServers([world.dnsServer])
  // A mailbox has the line ends of its system.
  const lines = message.toString('latin1').replace(/\r?\n/g, '\r\n')
  const { results } = await dkimVerify(Buffer.from(lines, 'latin1'), {
    resolver: (name) => names.resolveTxt(name),
  })
  return results.map(({ status }) => status.result)
}
