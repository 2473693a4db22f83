import { Resolver } from 'node:dns/promises'
import { sql } from 'kysely'
import { expect, onTestFinished } from 'vitest'
import { type DnsAnswer, startDnsServer } from '../dns-server.ts'
import { isDone, type MailEngine, startMailEngine } from '../mail-engine.ts'
import { patienceMs } from '../patience.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../scripted-smtp.ts'

/** An engine whose mail servers are not there yet: a relay, or those of `one.test` and `two.test`. Ends with the test. */
export async function startWithoutServers(to: 'relay' | 'direct') {
  // One that was free a moment ago.
  const former = await startScriptedSmtp()
  await former.stop()
  const { port } = former
  const startDns = async (at?: { port: number }) => {
    const server = await startDnsServer(at)
    server.set('one.test', ['127.0.0.1'])
    server.set('two.test', ['127.0.0.2'])
    return server
  }
  let dns = await startDns()
  // It answers or refuses: a busy machine must not make it seem silent.
  const resolver = new Resolver({ timeout: patienceMs, tries: 1 })
  resolver.setServers([dns.address])
  const relay = { host: '127.0.0.1', port, tls: 'opportunistic' as const, credentials: null }
  const direct = { resolver, allowPrivateNetworks: true, ports: { smtp: port, https: 1 } }
  const engine = await startMailEngine({
    port,
    to: to === 'relay' ? { kind: 'relay', relay } : { kind: 'direct', direct },
    connectionsPerHost: 1,
  })
  const servers: ScriptedSmtp[] = []
  onTestFinished(async () => {
    await engine[Symbol.asyncDispose]()
    for (const server of servers) await server.stop()
    await dns.stop()
  })
  return {
    engine,
    /** Sets the records of another name. */
    addName: (...[name, answer]: [string, DnsAnswer]) => dns.set(name, answer),
    untilLookedUp: (name: string) => expect.poll(() => dns.queries.map((query) => query.name)).toContain(name),
    stopResolver: () => dns.stop(),
    async restartResolver() {
      dns = await startDns({ port: Number(dns.address.split(':')[1]) })
    },
    /** Has a mail server be there. */
    async startServer(host = '127.0.0.1') {
      const server = await startScriptedSmtp({ host, port })
      servers.push(server)
      return server
    },
    untilUnusable: (count: number) => expect.poll(() => engine.unusable).toBe(count),
  }
}

/** Sends one email after another, each a second later. */
export async function sendInTurn(
  engine: MailEngine,
  count: number,
  domain = 'one.test',
  name = 'n',
): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    ids.push(await engine.send({ to: [`${name}${n}@${domain}`] }))
    await engine.advance(1)
  }
  return ids
}

/** Moves the beginnings of the 72 hours of all recipients back, as if a worker had looked on time meanwhile. */
export async function age({ db }: MailEngine, seconds: number): Promise<void> {
  await sql`
    UPDATE email_recipients SET
      first_attempt_at = first_attempt_at - make_interval(secs => ${seconds}),
      delayed_at = delayed_at - make_interval(secs => ${seconds})
  `.execute(db)
}

/** Lets time pass until all is done, as often as it takes. */
export async function untilDone(engine: MailEngine, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    while (!isDone(await engine.statusOf(id, isPutBack))) await engine.advance(2)
  }
}

export const isPutBack = ({ recipients }: { recipients: string[] }) => recipients[0] !== 'sending'

/** The same until it is put off. */
export async function untilDeferred(engine: MailEngine, id: string): Promise<void> {
  while ((await engine.statusOf(id, isPutBack)).recipients[0] !== 'deferred') await engine.advance(1)
}
