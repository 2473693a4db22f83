import { Resolver } from 'node:dns/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { MailResolver } from '../../server/smtp/mx.ts'
import { startDnsServer } from '../support/dns-server.ts'
import { startMailEngine } from '../support/mail-engine.ts'
import { startScriptedSmtp } from '../support/scripted-smtp.ts'

const isDelivered = ({ status }: { status: string }) => status === 'delivered'

/** Straight to one mail server that takes the mail of `n0.test` and so on; its name is told when the gate is open. */
async function start(domains: number) {
  const server = await startScriptedSmtp()
  const dns = await startDnsServer()
  dns.set('mx.test', ['127.0.0.1'])
  for (let n = 0; n < domains; n++) dns.set(`n${n}.test`, { MX: [{ exchange: 'mx.test', priority: 10 }] })
  const asking = new Resolver({ timeout: 30_000, tries: 1 })
  asking.setServers([dns.address])
  const gate = Promise.withResolvers<void>()
  const resolver: MailResolver = {
    resolve4: (name) => asking.resolve4(name),
    resolve6: (name) => asking.resolve6(name),
    resolveTxt: (name) => asking.resolveTxt(name),
    resolveMx: (name) => gate.promise.then(() => asking.resolveMx(name)),
  }
  const engine = await startMailEngine({
    port: server.port,
    to: { kind: 'direct', direct: { resolver, allowPrivateNetworks: true, ports: { smtp: server.port, https: 9 } } },
    concurrency: 1,
  })
  onTestFinished(async () => {
    gate.resolve()
    await engine[Symbol.asyncDispose]()
    await Promise.all([server.stop(), dns.stop()])
  })
  return { server, engine, open: gate.resolve }
}

test('more destinations than there is room for take turns, and no server is blamed for it', async () => {
  const { server, engine, open } = await start(10)
  const to = Array.from({ length: 10 }, (_, n) => `ada@n${n}.test`)
  const ids = [await engine.send({ to }), await engine.send({ to })]
  await engine.statusOf(ids[0] ?? '', ({ status }) => status === 'sending')
  open()
  // Recipients that found no room are tried again.
  await engine.untilDone(ids)
  for (const id of ids) {
    expect(await engine.statusOf(id, isDelivered)).toMatchObject({ attempts: Array(10).fill(1) })
    expect(new Set(await engine.eventsOf(id))).toEqual(new Set(['email.sent', 'email.delivered']))
  }
  expect(server.messages).toHaveLength(20)
})
