import { generateKeyPairSync } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import { firstIdAt } from '../../server/shared/ids.ts'
import type { Service, World } from './lab.ts'
import type { Processes } from './processes.ts'
import { addTenants, type Tenant } from './seed.ts'

/* The building blocks of the benchmarks of email, in addition to those in `lab.ts`. */

export const sendingDomain = 'sender.example'

/** A message for the API and for nodemailer, without recipients. 10 KB with its headers. */
export const message = {
  from: `Postern <hello@${sendingDomain}>`,
  subject: 'What is new this month',
  text: paragraphs(33).join('\n\n'),
  html: `<!doctype html><html><body>${paragraphs(47).map(asHtml).join('\n')}</body></html>`,
}

function asHtml(paragraph: string): string {
  return `<p style="margin:0 0 12px">${paragraph}</p>`
}

/** Returns paragraphs that all differ, so that they compress no better than real text. */
function paragraphs(count: number): string[] {
  const words =
    'with many a letter that comes and goes this house keeps what was said until somebody reads it once more'.split(' ')
  let state = 1
  const next = () => {
    state = (state * 48_271) % 2_147_483_647
    return words[state % words.length] ?? ''
  }
  return Array.from({ length: count }, () => `${Array.from({ length: 16 }, next).join(' ')}.`)
}

/** Returns a new DKIM key for nodemailer. */
export function dkimOfBaseline(): { domainName: string; keySelector: string; privateKey: string } {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return { domainName: sendingDomain, keySelector: 'baseline', privateKey: pem }
}

/** Emails in a batch request: the most that the API accepts. */
export const batchSize = 100

/** Returns a request with `emails` emails for `programs/load.ts`. */
export function sendingRequest({ key }: Tenant, emails: number) {
  const one = (index: number) => ({ ...message, to: `reader-{n}-${index}@recipients.example` })
  const body = emails === 1 ? one(0) : { emails: Array.from({ length: emails }, (_, index) => one(index)) }
  return {
    method: 'POST' as const,
    path: emails === 1 ? '/v1/emails' : '/v1/emails/batch',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
}

/** A mail server that accepts everything: see `programs/mail-sink.ts`. */
export type MailSink = {
  port: number
  /** Resets the count. */
  reset(): Promise<void>
  count(): Promise<number>
  /** Resolves when `count` messages have arrived since the reset. */
  until(count: number): Promise<void>
  /** Returns the mean size of the messages since the reset, and the first of them. */
  messages(): Promise<{ meanBytes: number; sample: string | null }>
  /** Returns when the last message began: milliseconds since the epoch. */
  lastBegunAt(): Promise<number>
  /** Stops replying to messages until `release`. */
  hold(): Promise<void>
  release(): Promise<void>
}

export async function startMailSink(processes: Processes): Promise<MailSink> {
  const running = await processes.start({ name: 'sink', file: import.meta.resolve('./programs/mail-sink.ts') })
  return {
    port: await running.ask('port', null, z.int()),
    reset: () => running.ask('reset', null, z.undefined()),
    count: () => running.ask('count', null, z.int()),
    until: (count) => running.ask('until', count, z.undefined()),
    messages: () => running.ask('messages', null, z.object({ meanBytes: z.number(), sample: z.string().nullable() })),
    lastBegunAt: () => running.ask('lastBegunAt', null, z.number()),
    hold: () => running.ask('hold', null, z.undefined()),
    release: () => running.ask('release', null, z.undefined()),
  }
}

/** Throws unless the server has accepted exactly `count` messages that are signed with all `algorithms`. */
export async function assertTaken(sink: MailSink, count: number, algorithms: readonly string[]): Promise<void> {
  const taken = await sink.count()
  if (taken !== count) throw new Error(`of ${count} messages, ${taken} came in`)
  const { sample } = await sink.messages()
  for (const algorithm of algorithms) {
    if (sample?.includes(`a=${algorithm};`) !== true) throw new Error(`the messages are not signed with ${algorithm}`)
  }
}

/** Adds an account with a live key and nothing else. */
export async function addSender(world: World): Promise<Tenant> {
  const [tenant] = await addTenants(world, [{ urls: [] }])
  if (tenant === undefined) throw new Error('there is no tenant')
  return tenant
}

/** Adds the sending domain over the API, and marks it as verified in the database. */
export async function addSendingDomain({ db }: World, { url }: Service, { key }: Tenant): Promise<void> {
  const response = await fetch(`${url}/v1/domains`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: sendingDomain }),
  })
  if (response.status !== 201) throw new Error(`the domain could not be added: ${await response.text()}`)
  await db.updateTable('domains').set({ status: 'verified', verified_at: new Date(), next_check_at: null }).execute()
}

const settledPollMs = 20
/** Milliseconds until giving up, far longer than a round takes. */
const settledLimitMs = 180_000

/** Resolves when all emails created since `since` are recorded as sent. Rejects when one failed. */
export async function untilSent({ db }: World, since: Date): Promise<void> {
  const first = firstIdAt('email', since)
  const deadline = performance.now() + settledLimitMs
  while (performance.now() < deadline) {
    const { rows } = await sql<{ open: number; other: number }>`
      SELECT count(*) FILTER (WHERE status IN ('queued', 'sending'))::int AS open,
        count(*) FILTER (WHERE status NOT IN ('queued', 'sending', 'sent'))::int AS other
      FROM emails WHERE id >= ${first}
    `.execute(db)
    if (rows[0]?.other !== 0) throw new Error(`${rows[0]?.other} emails were not sent`)
    if (rows[0].open === 0) return
    await delay(settledPollMs)
  }
  throw new Error(`not all emails were sent within ${settledLimitMs / 1000} s`)
}
