import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import { run } from '../support/run.ts'
import { personalContent } from './campaigns.ts'
import type { World } from './lab.ts'
import { assertTaken, type MailSink, message } from './mail.ts'
import type { Processes, Running } from './processes.ts'
import { formatNumber } from './report.ts'
import { settleDown } from './seed.ts'

/*
 * Listmonk (https://listmonk.app) as a baseline of campaigns. It is not part of this project: the benchmark runs the
 * `listmonk` that is on the path, with a database of its own.
 */

/** The version that is measured. Its tables differ from version to version. */
export const listmonkVersion = 'v6.2.0'

/** Returns why Listmonk cannot be measured on this machine, or null when it can. */
export async function whyNoListmonk(): Promise<string | null> {
  const stdout = await run('listmonk', ['--version'], { quiet: true }).then(
    (ended) => ended.stdout.trim(),
    () => null,
  )
  if (stdout === null) return `there is no \`listmonk\` ${listmonkVersion} on the path`
  const [version] = stdout.split(' ')
  return version === listmonkVersion ? null : `the \`listmonk\` on the path is ${version}, not ${listmonkVersion}`
}

/** Translates a Liquid template into one for Listmonk. Throws for a variable or filter that it cannot translate. */
export function toGoTemplate(liquid: string): string {
  return liquid.replaceAll(/\{\{ ?(.*?) ?\}\}/g, (whole, expression: string) => {
    const [name = '', ...filters] = expression.split(' | ')
    const goName = goNames[name]
    const isKnown = filters.every((filter) => /^default: "[^"]*"$/.test(filter))
    if (goName === undefined || !isKnown) throw new Error(`Listmonk has nothing for ${whole}`)
    return `{{ ${[goName, ...filters.map((filter) => filter.replace(':', ''))].join(' | ')} }}`
  })
}

const goNames: Readonly<Record<string, string>> = {
  'contact.firstName': '.Subscriber.FirstName',
  'contact.email': '.Subscriber.Email',
  unsubscribeUrl: 'UnsubscribeURL',
}

/** Returns the environment with which Listmonk uses a database. It listens on any free port of 127.0.0.1. */
export function listmonkEnvironment(connectionString: string): Record<string, string> {
  const { hostname, port, username, password, pathname } = new URL(connectionString)
  return {
    LISTMONK_app__address: '127.0.0.1:0',
    LISTMONK_db__host: hostname,
    LISTMONK_db__port: port,
    LISTMONK_db__user: decodeURIComponent(username),
    LISTMONK_db__password: decodeURIComponent(password),
    LISTMONK_db__database: decodeURIComponent(pathname.slice(1)),
    LISTMONK_db__ssl_mode: 'disable',
    // Those of its sample configuration.
    LISTMONK_db__max_open: '25',
    LISTMONK_db__max_idle: '25',
    LISTMONK_db__max_lifetime: '300s',
  }
}

export type ListmonkOptions = {
  /** An empty database. */
  world: World
  sink: MailSink
  /** People on the list that is sent to. */
  people: number
  /** Connections to the mail server, and messages sent at a time. */
  connections: number
}

/** A side of `inTurn`. */
export type Listmonk = {
  /** Starts its process. */
  prepare(): Promise<void>
  /**
   * Sends a campaign to all people, then stops the process. Returns the seconds from its first message until it is
   * finished: Listmonk looks for new campaigns every 5 s. Throws unless the sink has as many messages as people.
   */
  measure(): Promise<number>
}

/** Returns a sentence about the settings of Listmonk that matter for its speed. */
export function describeSettings(connections: number): string {
  return `Its settings: app.concurrency ${connections}, app.batch_size ${formatNumber(batchSize)}, no tracking, and app.message_rate so high that no worker pauses, which lets it render far ahead into memory.`
}

const noConfigFile = '--config='
/** People read from the database at a time. The default is 1,000. */
const batchSize = 5_000

/** Creates the tables of Listmonk, with its settings, the people and the template of the message of 10 KB. */
export async function installListmonk(processes: Processes, options: ListmonkOptions): Promise<Listmonk> {
  const { world, sink, people } = options
  const env = listmonkEnvironment(world.connectionString)
  await run('listmonk', ['--install', '--yes', '--idempotent', noConfigFile], {
    env: { ...env, PATH: process.env.PATH },
    quiet: true,
  })
  await setUp(options)
  const list = await addList(world, people)
  let running: Running
  let campaign: number
  return {
    async prepare() {
      campaign = await addCampaign(world, list)
      await settleDown(world)
      running = await processes.start({
        name: 'Listmonk owner',
        childrenName: 'Listmonk',
        file: import.meta.resolve('./programs/listmonk.ts'),
        args: [noConfigFile],
        env,
        readyLine: /http server started on/,
        usualLine: /^(?!.*\b(error|fatal|panic|WARNING)\b)/i,
      })
    },
    async measure() {
      await sink.reset()
      await sql`UPDATE campaigns SET status = 'running' WHERE id = ${campaign}`.execute(world.db)
      const firstAt = await untilFinished({ world, sink, running, campaign })
      const now = performance.now()
      await assertTaken(sink, people, [])
      await running.stop()
      return (now - firstAt) / 1000
    },
  }
}

/** Writes the settings: no limit on the rate, no tracking, no look for updates, and the sink as its mail server. */
async function setUp({ world, sink, people, connections }: ListmonkOptions): Promise<void> {
  const settings = {
    'app.root_url': 'https://mail.postern.example',
    'app.check_updates': false,
    'app.concurrency': connections,
    'app.batch_size': batchSize,
    // A worker pauses for a second after so many messages: twice its share. The queue holds twice that of all workers.
    'app.message_rate': Math.ceil((2 * people) / connections),
    'app.message_sliding_window': false,
    'privacy.disable_tracking': true,
    smtp: [
      {
        enabled: true,
        host: '127.0.0.1',
        port: sink.port,
        auth_protocol: 'none',
        tls_type: 'none',
        hello_hostname: 'mail.postern.example',
        max_conns: connections,
        max_msg_retries: 2,
        idle_timeout: '60s',
        wait_timeout: '5s',
        email_headers: [],
        from_addresses: [],
      },
    ],
  }
  for (const [key, value] of Object.entries(settings)) {
    await sql`UPDATE settings SET value = ${JSON.stringify(value)}::jsonb WHERE key = ${key}`.execute(world.db)
  }
}

const identified = z.tuple([z.object({ id: z.int() })])

/** Adds a list with so many people. */
async function addList({ db }: World, people: number): Promise<number> {
  const { rows } = await sql`
    INSERT INTO lists (uuid, name, type, optin) VALUES (gen_random_uuid(), 'Benchmark', 'private', 'single') RETURNING id
  `.execute(db)
  const [{ id }] = identified.parse(rows)
  await sql`
    WITH person AS (
      INSERT INTO subscribers (uuid, email, name)
      SELECT uuid, 'sub_' || replace(uuid::text, '-', '') || '@example.com', 'Ada'
      FROM (SELECT gen_random_uuid() AS uuid FROM generate_series(1, ${people})) AS u
      RETURNING id
    )
    INSERT INTO subscriber_lists (subscriber_id, list_id, status) SELECT id, ${id}, 'confirmed' FROM person
  `.execute(db)
  return id
}

/** Adds a draft of the message of 10 KB, with a template that has nothing but it. */
async function addCampaign({ db }: World, list: number): Promise<number> {
  const [subject, html, text] = [personalContent.subject, personalContent.html, personalContent.text].map(toGoTemplate)
  const { rows } = await sql`
    WITH template AS (
      INSERT INTO templates (name, type, subject, body) VALUES ('Bare', 'campaign', '', '{{ template "content" . }}')
      RETURNING id
    )
    INSERT INTO campaigns (uuid, name, subject, from_email, body, altbody, content_type, messenger, template_id)
    SELECT gen_random_uuid(), 'Benchmark', ${subject}, ${message.from}, ${html}, ${text}, 'html', 'email', id FROM template
    RETURNING id
  `.execute(db)
  const [{ id }] = identified.parse(rows)
  await sql`INSERT INTO campaign_lists (campaign_id, list_id) VALUES (${id}, ${list})`.execute(db)
  return id
}

const pollMs = 20

type Sending = { world: World; sink: MailSink; running: Running; campaign: number }

/** Waits until a campaign is finished. Returns when its first message came in. Rejects when Listmonk or it ended. */
async function untilFinished({ world, sink, running, campaign }: Sending): Promise<number> {
  let firstAt: number | undefined
  for (;;) {
    await running.ask('ping', null, z.undefined())
    if (firstAt === undefined && (await sink.count()) > 0) firstAt = performance.now()
    const { rows } = await sql<{ status: string }>`SELECT status FROM campaigns WHERE id = ${campaign}`.execute(
      world.db,
    )
    const status = rows[0]?.status
    if (status === 'finished') return firstAt ?? performance.now()
    if (status !== 'running') throw new Error(`the campaign of Listmonk is ${status ?? 'gone'}`)
    await delay(pollMs)
  }
}
