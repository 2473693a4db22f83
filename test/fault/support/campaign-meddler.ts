import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import { newId } from '../../../server/shared/ids.ts'
import type { Answer, CampaignStage, CampaignTrial, Person } from './campaign-stage.ts'
import type { Random } from './seeded-random.ts'

/** The actions of people while a campaign to them is under way. */
const actions = ['unsubscribe', 'unsubscribe from all', 'leave', 'be deleted', 'be suppressed', 'join'] as const

/** Between two actions, at most. Milliseconds. */
const paceMs = 30

/**
 * Has people leave, unsubscribe, be suppressed, be deleted and join, until `signal` is aborted. Writes down what each of
 * them is to get from then on.
 */
export async function meddle(
  stage: CampaignStage,
  trial: CampaignTrial,
  { random, signal }: { random: Random; signal: AbortSignal },
): Promise<void> {
  const touched = new Set<Person>(trial.people.filter(({ fate }) => fate !== 'gets'))
  while (!signal.aborted) {
    await delay(random.number(paceMs))
    const action = random.pick(actions)
    if (action === 'join') {
      await join(stage, trial)
      continue
    }
    const person = random.pick(trial.people)
    if (touched.has(person)) continue
    touched.add(person)
    // Until it is known what it did, and when.
    person.fate = 'may'
    const answer = await act(stage, trial, { action, person })
    if (answer === null || answer.status === 503) continue
    if (answer.status >= 300) throw new Error(`${action} was answered ${answer.status} ${JSON.stringify(answer.body)}`)
    if (!(await isBegun(stage, trial, person))) person.fate = 'nothing'
  }
}

type Act = { action: Exclude<(typeof actions)[number], 'join'>; person: Person }

function act({ call }: CampaignStage, { audienceId }: CampaignTrial, { action, person }: Act): Promise<Answer> {
  const contact = `/v1/audiences/${audienceId}/contacts/${person.subscriberId}`
  const subscriber = `/v1/subscribers/${person.subscriberId}`
  switch (action) {
    case 'unsubscribe':
      return call('PATCH', contact, { status: 'unsubscribed' })
    case 'unsubscribe from all':
      return call('POST', `${subscriber}/unsubscribe`)
    case 'leave':
      return call('DELETE', contact)
    case 'be deleted':
      return call('DELETE', subscriber)
    case 'be suppressed':
      return call('POST', '/v1/suppressions', { address: person.address })
  }
}

/**
 * Whether an attempt was begun to write to a person. From then on it is not known whether they have it. Waits for a
 * worker that has looked at them before they changed, and is about to begin.
 */
async function isBegun({ mail }: CampaignStage, { id }: CampaignTrial, { subscriberId }: Person): Promise<boolean> {
  const { rows } = await sql<{ attempts: number }>`
    SELECT e.attempt_count AS attempts FROM campaign_recipients c JOIN email_recipients e ON e.email_id = c.email_id
    WHERE c.campaign_id = ${id} AND c.subscriber_id = ${subscriberId} FOR SHARE OF e
  `
    .execute(mail.db)
    // The database is away: so is what it knows.
    .catch(() => ({ rows: [{ attempts: 1 }] }))
  return rows.some(({ attempts }) => attempts > 0)
}

const added = z.object({ subscriberId: z.string() })

/** Adds somebody to the audience once the list of recipients is begun: they get nothing. */
async function join(stage: CampaignStage, trial: CampaignTrial): Promise<void> {
  const { rows } = await sql`
    SELECT FROM campaigns WHERE id = ${trial.id} AND listed_at < now() - interval '5 milliseconds'
  `
    .execute(stage.mail.db)
    .catch(() => ({ rows: [] }))
  if (rows.length === 0) return
  const address = `${newId('subscriber', new Date())}@example.com`
  const answer = await stage.call('POST', `/v1/audiences/${trial.audienceId}/contacts`, { email: address })
  if (answer?.status === 201) trial.people.push({ ...added.parse(answer.body), address, fate: 'nothing' })
}

/** Moves that a campaign may make or refuse. */
const moves = ['pause', 'resume', 'resume', 'resume'] as const

/** Pauses and resumes a campaign at random until `signal` is aborted; then it goes on, unless it has ended. */
export async function pauseAndResume(
  stage: CampaignStage,
  trial: CampaignTrial,
  { random, signal }: { random: Random; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await delay(random.number(4 * paceMs))
    const answer = await stage.call('POST', `/v1/campaigns/${trial.id}/${random.pick(moves)}`)
    if (answer !== null && ![200, 422, 503].includes(answer.status)) {
      throw new Error(`a move was answered ${answer.status} ${JSON.stringify(answer.body)}`)
    }
  }
}

/** Has a campaign go on that may be paused. */
export async function goOn(stage: CampaignStage, trial: CampaignTrial): Promise<void> {
  await stage.ask({ method: 'POST', path: `/v1/campaigns/${trial.id}/resume`, statuses: [200, 422, 409] })
}

/**
 * Cancels a campaign, unless it has ended. Whom no attempt was begun for gets nothing from then on.
 */
export async function cancel(stage: CampaignStage, trial: CampaignTrial): Promise<void> {
  await stage.ask({ method: 'POST', path: `/v1/campaigns/${trial.id}/cancel`, statuses: [200, 422, 409] })
  if ((await stage.statusOf(trial)) !== 'canceled') return
  const { rows } = await sql<{ subscriber_id: string }>`
    SELECT c.subscriber_id FROM campaign_recipients c JOIN email_recipients e ON e.email_id = c.email_id
    WHERE c.campaign_id = ${trial.id} AND e.attempt_count > 0
  `.execute(stage.mail.db)
  const begun = new Set(rows.map((row) => row.subscriber_id))
  for (const person of trial.people) if (!begun.has(person.subscriberId)) person.fate = 'nothing'
  // An attempt that was begun may have been cut off by a kill.
  for (const person of trial.people) if (person.fate === 'gets') person.fate = 'may'
}
