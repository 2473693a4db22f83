import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import { newId } from '../../server/shared/ids.ts'
import type { Service, World } from './lab.ts'
import { message } from './mail.ts'
import { addAudience, type Tenant } from './seed.ts'

/* The building blocks of the benchmark of campaigns, in addition to those in `mail.ts`. */

/** The message of `mail.ts`, with words for each person. */
export const personalContent = {
  subject: `${message.subject}, {{ contact.firstName | default: "there" }}`,
  preheader: null,
  html: message.html.replace(
    '<body>',
    '<body><p>Dear {{ contact.firstName | default: "reader" }} ({{ contact.email }}), <a href="{{ unsubscribeUrl }}">leave</a></p>',
  ),
  text: `Dear {{ contact.firstName | default: "reader" }} ({{ contact.email }}),\n\n${message.text}\n\n{{ unsubscribeUrl }}`,
}

/** People added in one statement. */
const chunkSize = 10_000

/** Adds an audience of so many people. Returns its id. */
export async function addPeople(world: World, tenant: Tenant, size: number): Promise<string> {
  const audience = await addAudience(world, tenant)
  const { accountId } = tenant
  for (let from = 0; from < size; from += chunkSize) {
    const at = new Date()
    const ids = Array.from({ length: Math.min(chunkSize, size - from) }, () => newId('subscriber', at))
    await sql`
      WITH person AS (
        INSERT INTO subscribers (id, account_id, email, email_key, first_name, created_at, updated_at)
        SELECT id, ${accountId}, address, address, 'Ada', ${at}, ${at}
        FROM unnest(${ids}::text[]) AS i (id), LATERAL (SELECT id || '@example.com' AS address) AS a
        RETURNING id
      )
      INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
      SELECT ${audience}, id, ${accountId}, 'active', ${at}, ${at} FROM person
    `.execute(world.db)
  }
  return audience
}

type Means = { service: Service; tenant: Tenant }

const created = z.object({ id: z.string() })

async function post({ service, tenant }: Means, path: string, body: unknown): Promise<unknown> {
  const response = await fetch(`${service.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`)
  return response.json()
}

/** Adds a draft of the message of 10 KB. */
export async function addCampaign(means: Means, fields: { audienceId: string; throttle?: number }): Promise<string> {
  const { subject, html, text } = personalContent
  const draft = { name: 'Benchmark', from: message.from, subject, content: { html, text }, ...fields }
  return created.parse(await post(means, '/v1/campaigns', draft)).id
}

export async function startCampaign(means: Means, id: string): Promise<void> {
  await post(means, `/v1/campaigns/${id}/send`, {})
}

export async function pauseCampaign(means: Means, id: string): Promise<void> {
  await post(means, `/v1/campaigns/${id}/pause`, {})
}

export async function cancelCampaign(means: Means, id: string): Promise<void> {
  await post(means, `/v1/campaigns/${id}/cancel`, {})
}

const pollMs = 20

/** Resolves when a campaign has a status. Rejects when it ends otherwise. */
export async function untilStatus({ db }: World, id: string, wanted: string): Promise<void> {
  for (;;) {
    const { rows } = await sql<{ status: string; status_reason: string | null }>`
      SELECT status, status_reason FROM campaigns WHERE id = ${id}
    `.execute(db)
    const [row] = rows
    if (row?.status === wanted) return
    if (row === undefined || ['paused', 'canceled', 'completed'].includes(row.status)) {
      throw new Error(`the campaign is ${row?.status ?? 'gone'}: ${row?.status_reason ?? 'no reason'}`)
    }
    await delay(pollMs)
  }
}
