import pino from 'pino'
import type { Domain, DomainRecord } from '../../../contract/domains.ts'
import { runDueChecks } from '../../../server/domains/check-domain.ts'
import type { SendingHost } from '../../../server/domains/records.ts'
import { createDomainService } from '../../../server/domains/service.ts'
import { countBounces } from '../../../server/emails/bounce-counts.ts'
import type { Clock } from '../../../server/lib/clock.ts'
import { createOutbox } from '../../../server/outbox/append.ts'
import { secretBox } from '../../../server/secrets/secret-box.ts'
import { newId } from '../../../server/shared/ids.ts'
import { createTestDatabase } from '../database.ts'
import type { DnsAnswer, DnsServer } from '../dns-server.ts'
import { startDnsServer } from '../dns-server.ts'
import { createEmittedReader } from './emitted.ts'

export type DomainWorld = Awaited<ReturnType<typeof createDomainWorld>>

export const sender: SendingHost = { hostname: 'mail.postern.example', spfInclude: null }

/** Sending domains over a database and a name server of their own, with two accounts and a clock that is moved by hand. */
export async function createDomainWorld({ isCaptured = false, sender: shown = sender } = {}) {
  const database = await createTestDatabase()
  const { db } = database
  const dns = await startDnsServer()
  let now = Date.parse('2026-03-01T09:30:00.000Z')
  const clock: Clock = { now: () => new Date(now) }
  const outbox = createOutbox({ clock, wake: () => undefined })
  const box = secretBox(Buffer.alloc(32, 3))
  const checks = { sender: shown, dns: { servers: [dns.address] }, isCaptured }

  async function addAccount(name: string): Promise<string> {
    const id = newId('account', clock.now())
    await db.insertInto('accounts').values({ id, name, plan: 'scale' }).execute()
    return id
  }

  return {
    db,
    dns,
    clock,
    box,
    account: await addAccount('Ours'),
    stranger: await addAccount('Theirs'),
    domains: createDomainService({ ...checks, clock, outbox, secretBox: box, countBounces }),
    moveClock(ms: number): void {
      now += ms
    },
    /** A run of the schedule, as one process of the service makes it. */
    runDueChecks: (signal = new AbortController().signal) =>
      runDueChecks({ ...checks, db, clock, outbox, logger: pino({ level: 'silent' }), signal }),
    emitted: createEmittedReader(db),
    async end(): Promise<void> {
      await dns.stop()
      await database.drop()
    },
  }
}

/** Publishes the records of a domain as they are shown, all or those of some purposes. */
export function publish(
  dns: DnsServer,
  { records }: Pick<Domain, 'records'>,
  purposes?: DomainRecord['purpose'][],
): void {
  const published = records.filter(({ purpose }) => purposes?.includes(purpose) ?? true)
  for (const [name, ofName] of Map.groupBy(published, (record) => record.name)) dns.set(name, answerOf(ofName))
}

/** Takes the records of a domain out of the DNS again. */
export function withdraw(dns: DnsServer, { records }: Pick<Domain, 'records'>): void {
  for (const { name } of records) dns.unset(name)
}

function answerOf(records: readonly DomainRecord[]): DnsAnswer {
  const ofType = (type: DomainRecord['type']) => records.filter((record) => record.type === type)
  return {
    TXT: ofType('TXT').map(({ value }) => value),
    MX: ofType('MX').map(({ value, priority }) => ({ exchange: value, priority: priority ?? 0 })),
  }
}

/** The statuses of the records, by purpose. */
export function statusesOf({ records }: Pick<Domain, 'records'>): Record<string, string> {
  return Object.fromEntries(records.map(({ purpose, status }) => [purpose, status]))
}
