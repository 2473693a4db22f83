import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import { newId } from '../../../server/shared/ids.ts'
import { nobody, outsideSegments } from './campaign-features.ts'
import type { Answer, CampaignStage, CampaignTrial, Person } from './campaign-stage.ts'
import type { Random } from './seeded-random.ts'

/** The actions of a person that end what they get. */
const departures = ['unsubscribe', 'unsubscribe from all', 'leave', 'be deleted', 'be suppressed'] as const

type Departure = (typeof departures)[number] | 'leave the topic'

/** The actions of people, and of the owner of the account, while a campaign is under way. */
type Action = Departure | 'join' | 'leave the segments' | 'edit a segment' | 'publish a template'

function actionsFor({ features }: CampaignTrial): readonly Action[] {
  return [
    ...departures,
    'join',
    ...(features.topic === null ? [] : (['leave the topic'] as const)),
    ...(features.hasSegments ? (['leave the segments', 'edit a segment'] as const) : []),
    ...(features.hasTemplate ? (['publish a template'] as const) : []),
  ]
}

/** Between two actions, at most. Milliseconds. */
const paceMs = 30

/**
 * Has people leave, unsubscribe, be suppressed, be deleted, change and join, and segments and templates be edited,
 * until `signal` is aborted. Writes down what each person is to get from then on.
 */
export async function meddle(
  stage: CampaignStage,
  trial: CampaignTrial,
  { random, signal }: { random: Random; signal: AbortSignal },
): Promise<void> {
  const touched = new Set<Person>(trial.people.filter(({ fate }) => fate !== 'gets'))
  const actions = actionsFor(trial)
  while (!signal.aborted) {
    await delay(random.number(paceMs))
    const action = random.pick(actions)
    const person = random.pick(trial.people)
    if (action === 'join') await join(stage, trial)
    else if (action === 'edit a segment') await editSegment(stage, trial, random)
    else if (action === 'publish a template') await publishTemplate(stage, trial, random)
    else if (!touched.has(person)) {
      touched.add(person)
      if (action === 'leave the segments') await leaveSegments(stage, trial, person)
      else await depart(stage, trial, { action, person })
    }
  }
}

/** Throws for an answer that says that nothing was done. Returns whether it was done; false: that is not known. */
function isDone(action: string, answer: Answer): boolean {
  if (answer === null || answer.status === 503) return false
  if (answer.status < 300) return true
  throw new Error(`${action} was answered ${answer.status} ${JSON.stringify(answer.body)}`)
}

type Departing = { action: Departure; person: Person }

async function depart(stage: CampaignStage, trial: CampaignTrial, { action, person }: Departing): Promise<void> {
  // Until it is known what it did, and when.
  person.fate = 'may'
  person.outcome = null
  if (!isDone(action, await act(stage, trial, { action, person }))) return
  if (!(await isBegun(stage, trial, person))) person.fate = 'nothing'
}

function act({ call }: CampaignStage, trial: CampaignTrial, { action, person }: Departing): Promise<Answer> {
  const contact = `/v1/audiences/${trial.audienceId}/contacts/${person.subscriberId}`
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
    case 'leave the topic':
      return call('PATCH', `${subscriber}/topics`, { topics: [{ topicId: trial.topicId, subscribed: false }] })
  }
}

/** Changes a person so that they are in no segment. Who is listed gets the campaign all the same. */
async function leaveSegments({ call, mail }: CampaignStage, { id }: CampaignTrial, person: Person): Promise<void> {
  const { rows } = await sql`
    SELECT FROM campaign_recipients WHERE campaign_id = ${id} AND subscriber_id = ${person.subscriberId}
  `
    .execute(mail.db)
    .catch(() => ({ rows: [] }))
  if (rows.length === 0) {
    person.fate = 'may'
    person.outcome = null
  }
  const { firstName, tier } = outsideSegments
  const body = { firstName, properties: { tier } }
  isDone('leave the segments', await call('PATCH', `/v1/subscribers/${person.subscriberId}`, body))
}

/** Empties a segment after the list of recipients was begun. The list goes on with the conditions from before. */
async function editSegment({ call, mail }: CampaignStage, trial: CampaignTrial, random: Random): Promise<void> {
  const { rows } = await sql`SELECT FROM campaigns WHERE id = ${trial.id} AND listed_at IS NOT NULL`
    .execute(mail.db)
    .catch(() => ({ rows: [] }))
  if (rows.length === 0) return
  const path = `/v1/segments/${random.pick(trial.segmentIds)}`
  isDone('edit a segment', await call('PATCH', path, { conditions: nobody }))
}

/** Publishes another version of a template: the campaign has a copy of the first. */
async function publishTemplate({ call }: CampaignStage, trial: CampaignTrial, random: Random): Promise<void> {
  const path = `/v1/templates/${random.pick(trial.templateIds)}`
  if (!isDone('edit a template', await call('PATCH', path, { text: 'Another version' }))) return
  isDone('publish a template', await call('POST', `${path}/publish`, {}))
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
  if (answer?.status === 201)
    trial.people.push({ ...added.parse(answer.body), address, fate: 'nothing', outcome: 'not listed' })
}

/** Moves that a campaign may make or refuse. */
const moves = ['pause', 'resume', 'resume', 'resume'] as const

/**
 * Pauses and resumes a campaign at random until `signal` is aborted; then it goes on, unless it has ended. Throws when an
 * email was made or an attempt begun in a pause.
 */
export async function pauseAndResume(
  stage: CampaignStage,
  trial: CampaignTrial,
  { random, signal }: { random: Random; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await delay(random.number(4 * paceMs))
    const move = random.pick(moves)
    if (move === 'pause') trial.wasPaused = true
    const answer = await stage.call('POST', `/v1/campaigns/${trial.id}/${move}`)
    if (answer !== null && ![200, 422, 503].includes(answer.status)) {
      throw new Error(`a move was answered ${answer.status} ${JSON.stringify(answer.body)}`)
    }
    if (move === 'pause') await watchPause(stage, trial, () => delay(random.number(4 * paceMs)))
  }
}

/** Does `work`, which does not resume a campaign. Throws when it is paused, and an email was made or an attempt begun. */
export async function watchPause(stage: CampaignStage, trial: CampaignTrial, work: () => Promise<void>): Promise<void> {
  const before = (await stage.statusOf(trial)) === 'paused' ? await attemptsOf(stage, trial) : null
  await work()
  if (before === null) return
  const after = await attemptsOf(stage, trial)
  // A request to resume it was cut off by a kill, and has had its effect since.
  if ((await stage.statusOf(trial)) !== 'paused') return
  for (const [person, attempts] of after) {
    const earlier = before.get(person)
    if (earlier === undefined) throw new Error(`an email to ${person} was made in a pause`)
    // Fewer where what waited for a connection was given back.
    if (attempts > earlier) throw new Error(`an attempt to send to ${person} was begun in a pause`)
  }
}

/**
 * Returns how many attempts were begun for each person who has an email of a campaign. Waits for workers that have looked
 * at the campaign before its last change, and are about to begin.
 */
function attemptsOf({ mail }: CampaignStage, { id }: CampaignTrial): Promise<Map<string, number>> {
  return mail.db.transaction().execute(async (trx) => {
    await sql`LOCK TABLE email_recipients IN EXCLUSIVE MODE`.execute(trx)
    const { rows } = await sql<{ person: string; attempts: number }>`
      SELECT c.subscriber_id AS person, e.attempt_count AS attempts
      FROM campaign_recipients c JOIN email_recipients e ON e.email_id = c.email_id WHERE c.campaign_id = ${id}
    `.execute(trx)
    return new Map(rows.map(({ person, attempts }) => [person, attempts]))
  })
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
  if ((await stage.statusOf(trial)) === 'canceled') await noteCanceled(stage, trial)
}

/** Sends one request to cancel a campaign. Without a response, which a kill can prevent, it may be canceled or not. */
export async function tryToCancel(stage: CampaignStage, trial: CampaignTrial): Promise<void> {
  const answer = await stage.call('POST', `/v1/campaigns/${trial.id}/cancel`)
  if (answer?.status === 200) await noteCanceled(stage, trial)
  else trial.mayBeCanceled = true
}

/** Writes down which campaigns were canceled by a request that had no answer. Each person gets the others. */
export async function noteLateCancels(stage: CampaignStage, trials: readonly CampaignTrial[]): Promise<void> {
  for (const trial of trials) {
    if (trial.mayBeCanceled && (await stage.statusOf(trial)) === 'canceled') await noteCanceled(stage, trial)
  }
}

/**
 * Notes that people without an attempt get nothing from now on. Throws when the cancel has left an email in the queue.
 * That must be checked here: the next process that starts removes such emails, so the verdict would not see them.
 */
async function noteCanceled(stage: CampaignStage, trial: CampaignTrial): Promise<void> {
  const { rows: left } = await sql<{ person: string }>`
    SELECT c.subscriber_id AS person FROM campaign_recipients c JOIN email_recipients e ON e.email_id = c.email_id
    WHERE c.campaign_id = ${trial.id} AND c.status = 'canceled' AND e.status <> 'canceled'
  `.execute(stage.mail.db)
  if (left[0] !== undefined) throw new Error(`${left[0].person} is canceled, and their email is not`)
  const attempts = await attemptsOf(stage, trial)
  for (const person of trial.people) {
    if ((attempts.get(person.subscriberId) ?? 0) === 0) person.fate = 'nothing'
    // An attempt that was begun may have been cut off by a kill.
    if (person.fate === 'gets') person.fate = 'may'
    if (person.outcome !== 'not listed') person.outcome = null
  }
}

/** Does `work` beside a campaign until `until` has ended. Throws what either of them throws. */
export async function beside(
  work: (signal: AbortSignal) => Promise<unknown>,
  until: () => Promise<void>,
): Promise<void> {
  const ending = new AbortController()
  const working = work(ending.signal)
  working.catch(() => undefined)
  try {
    await until()
  } finally {
    ending.abort()
  }
  await working
}
