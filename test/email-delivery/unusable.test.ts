import { describe, expect, test } from 'vitest'
import { newId } from '../../server/shared/ids.ts'
import { isDone, type MailEngine } from '../support/mail-engine.ts'
import type { ScriptedSmtp } from '../support/scripted-smtp.ts'
import { pass } from '../support/worlds/campaign-of-emails.ts'
import {
  age,
  isPutBack,
  sendInTurn,
  startWithoutServers,
  untilDeferred,
  untilDone,
} from '../support/worlds/unusable-servers.ts'

/* A way out that cannot be used is no attempt at a recipient. What waits for it leaves in the order it came. */

const secondsOfDay = 86_400
/** As long as it takes at most until one conversation tries again. */
const longestRelayPause = 16

/** Gives the account a second domain, with the keys of the first. */
async function addDomain({ db, domainId, clock }: MailEngine): Promise<string> {
  const first = await db.selectFrom('domains').selectAll().where('id', '=', domainId).executeTakeFirstOrThrow()
  const id = newId('domain', clock.now())
  await db
    .insertInto('domains')
    .values({ ...first, id, name: `other.${first.name}`, findings: JSON.stringify(first.findings) })
    .execute()
  return id
}

const addressesAt = ({ messages }: ScriptedSmtp) => messages.map(({ recipients }) => recipients[0]?.address)

/** The one that tries whether the way out can be used again may leave before its turn or after it. */
function expectInOrder(server: ScriptedSmtp, expected: readonly string[]): void {
  const addresses = addressesAt(server)
  expect(addresses.toSorted()).toEqual(expected.toSorted())
  const isInOrderWithout = (tried: string) => {
    const others = addresses.filter((address) => address !== tried)
    return others.every((address, index) => address === expected.filter((each) => each !== tried)[index])
  }
  expect(expected.some(isInOrderWithout), addresses.join(', ')).toBe(true)
}

const isUntouched = ({ status, attempts }: { status: string; attempts: number[] }) =>
  status === 'queued' && attempts[0] === 0
const untouched = { status: 'queued', recipients: ['queued'], attempts: [0] }

describe('a relay that cannot be used', () => {
  test('a relay that cannot be used costs no recipient an attempt, and what waited leaves in its order, before what came later', async () => {
    const { engine, startServer, untilUnusable } = await startWithoutServers('relay')
    const waited = await sendInTurn(engine, 10)
    await untilUnusable(1)
    // A week, with a restart in it.
    for (let day = 0; day < 7; day++) {
      await engine.advance(secondsOfDay)
      await untilUnusable(1)
      if (day === 3) {
        await engine.stopWorker(1_000)
        engine.startWorker()
      }
    }
    const later = await sendInTurn(engine, 6, 'one.test', 'later')
    for (const id of [...waited, ...later]) {
      expect(await engine.statusOf(id, isUntouched)).toEqual(untouched)
      expect(await engine.eventsOf(id)).toEqual([])
    }

    const server = await startServer()
    await engine.advance(longestRelayPause)
    for (const id of [...waited, ...later]) {
      expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'sent', attempts: [1] })
      expect(await engine.eventsOf(id)).toEqual(['email.sent'])
    }
    expectInOrder(server, [...waited.map((_, n) => `n${n}@one.test`), ...later.map((_, n) => `later${n}@one.test`)])
    expect(engine.unusable).toBe(0)
  })

  test.each(['421 4.3.2 Not now', '554 5.7.1 Go away'])(
    'a relay that greets with %s costs no recipient an attempt',
    async (reply) => {
      const { engine, startServer, untilUnusable } = await startWithoutServers('relay')
      const server = await startServer()
      server.at('connect', { reply, next: 'drop' })
      const [first = '', second = ''] = await sendInTurn(engine, 2)
      await untilUnusable(1)
      for (const id of [first, second]) await engine.statusOf(id, isUntouched)
      server.at('connect', () => undefined)
      await engine.advance(longestRelayPause)
      for (const id of [first, second]) expect(await engine.statusOf(id, isDone)).toMatchObject({ attempts: [1] })
      expectInOrder(server, ['n0@one.test', 'n1@one.test'])
    },
  )

  test('a relay that cannot be used gets what is claimed together in its order, also where the first takes longest to make', async () => {
    const { engine, startServer } = await startWithoutServers('relay')
    const server = await startServer()
    const isSent = async (id: string) => expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'sent' })
    // Its key is read from the database, the one of the others is known by then.
    const other = await addDomain(engine)
    await isSent(await engine.send({ to: ['before@one.test'] }))
    const dueIn = (seconds: number) => new Date(engine.clock.now().getTime() + seconds * 1_000)
    const ids = [await engine.send({ to: ['first@one.test'], domainId: other, scheduledAt: dueIn(60) })]
    const addresses = ['before@one.test', 'first@one.test']
    for (let n = 0; n < 8; n++) {
      ids.push(await engine.send({ to: [`n${n}@one.test`], scheduledAt: dueIn(61 + n) }))
      addresses.push(`n${n}@one.test`)
    }
    await engine.advance(80)
    for (const id of ids) await isSent(id)
    expect(addressesAt(server)).toEqual(addresses)
  })

  test('a relay that cannot be used is tried over one connection, again and again', async () => {
    const { engine, startServer, untilUnusable } = await startWithoutServers('relay')
    const server = await startServer()
    server.at('connect', { reply: '421 4.3.2 Not now', next: 'drop' })
    await sendInTurn(engine, 10)
    await untilUnusable(1)
    const before = server.connections
    await engine.advance(longestRelayPause)
    await server.reached('connect', before + 1)
    expect(server.mostOpen).toBe(1)
  })

  test('a relay that cannot be used takes nothing from the 72 hours of a recipient that was put off before', async () => {
    const { engine, startServer, untilUnusable } = await startWithoutServers('relay')
    const server = await startServer()
    server.at('rcpt', '451 4.7.1 Greylisted')
    const id = await engine.send({ to: ['ada@one.test'] })
    const isDeferred =
      (times: number) =>
      ({ recipients, attempts }: { recipients: string[]; attempts: number[] }) =>
        recipients[0] === 'deferred' && attempts[0] === times
    await engine.statusOf(id, isDeferred(1))
    await server.stop()
    await engine.advance(4 * secondsOfDay)
    await untilUnusable(1)
    await engine.advance(secondsOfDay)
    const back = await startServer()
    back.at('rcpt', '451 4.7.1 Greylisted')
    await engine.advance(longestRelayPause)
    await engine.statusOf(id, isDeferred(2))
    back.at('rcpt', () => undefined)
    await engine.advance(700)
    expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'sent', attempts: [3] })
  })
})

describe('a domain whose servers cannot be used', () => {
  test('a domain whose servers cannot be used is told of once, costs no attempt, and gets what waited in its order; other domains are not held up', async () => {
    const { engine, startServer, untilUnusable } = await startWithoutServers('direct')
    const waited = await sendInTurn(engine, 10)
    await untilUnusable(1)
    await startServer('127.0.0.2')
    const other = await engine.send({ to: ['ada@two.test'] })
    expect(await engine.statusOf(other, isDone)).toMatchObject({ status: 'delivered', attempts: [1] })
    await engine.advance(3_600)
    await untilUnusable(1)
    for (const id of waited) {
      await untilDeferred(engine, id)
      expect(await engine.statusOf(id, isPutBack)).toMatchObject({ recipients: ['deferred'], attempts: [0] })
      expect(await engine.eventsOf(id)).toEqual(['email.delivery_delayed'])
    }
    const server = await startServer()
    await untilDone(engine, waited)
    for (const id of waited)
      expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [1] })
    expectInOrder(
      server,
      waited.map((_, n) => `n${n}@one.test`),
    )
    expect(await engine.eventsOf(waited[4] ?? '')).toEqual(['email.delivery_delayed', 'email.sent', 'email.delivered'])
  })

  test('a domain whose servers cannot be used for 72 hours has the email given up, also one that came while it was known', async () => {
    const { engine, untilUnusable } = await startWithoutServers('direct')
    const [first = '', second = ''] = await sendInTurn(engine, 2)
    await untilUnusable(1)
    for (const id of [first, second]) await untilDeferred(engine, id)
    // What is due by now is looked at.
    await pass(engine, 1)
    const delayedAt = () => engine.db.selectFrom('email_recipients').select('delayed_at').orderBy('email_id').execute()
    const before = await delayedAt()
    // In small steps, so that each look is on time.
    for (let steps = 0; steps < 18; steps++) await pass(engine, 20)
    // Looks that are on time leave out nothing.
    expect(await delayedAt()).toEqual(before)
    await age(engine, 2 * secondsOfDay)
    await pass(engine, 61)
    expect(await engine.statusOf(first, isPutBack)).toMatchObject({ recipients: ['deferred'] })
    await age(engine, secondsOfDay)
    await untilDone(engine, [first, second])
    for (const id of [first, second]) {
      expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'failed' })
      expect(await engine.eventsOf(id)).toEqual(['email.delivery_delayed', 'email.failed'])
      expect((await engine.timelineOf(id)).at(-1)?.detail).toMatch(
        /^Given up after 72 hours: no mail server .* refused the connection\.$/,
      )
    }
  })

  test('a domain whose servers cannot be used has no time counted in which the service is away, before and after a first attempt', async () => {
    const { engine, startServer, untilUnusable } = await startWithoutServers('direct')
    const server = await startServer()
    server.at('rcpt', '451 4.7.1 Greylisted')
    const tried = await sendInTurn(engine, 2)
    for (const id of tried) await untilDeferred(engine, id)
    await server.stop()
    await engine.advance(301)
    await untilUnusable(1)
    const untried = await sendInTurn(engine, 2, 'one.test', 'untried')
    for (const id of untried) await untilDeferred(engine, id)
    const ids = [...tried, ...untried]
    const attempts = () => Promise.all(ids.map(async (id) => (await engine.statusOf(id, isPutBack)).attempts[0] ?? 0))
    for (let looks = 0; looks < 3; looks++) await pass(engine, 61)
    await engine.stopWorker(1_000)
    await engine.advance(73 * 3_600)
    engine.startWorker()
    for (let looks = 0; looks < 3; looks++) await pass(engine, 61)
    expect(await attempts()).toEqual([1, 1, 0, 0])
    const back = await startServer()
    back.at('rcpt', '451 4.7.1 Greylisted')
    while ((await attempts()).some((count, index) => count <= (index < tried.length ? 1 : 0))) await pass(engine, 61)
    for (const id of ids) expect(await engine.statusOf(id, isPutBack)).toMatchObject({ recipients: ['deferred'] })
    back.at('rcpt', () => undefined)
    await engine.untilDone(ids)
    for (const id of ids) expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered' })
  })

  test('a resolver that refuses connections costs no recipient an attempt, and what waited goes out once it answers', async () => {
    const { engine, startServer, stopResolver, restartResolver, untilUnusable } = await startWithoutServers('direct')
    const server = await startServer()
    await stopResolver()
    const waited = await sendInTurn(engine, 3)
    await untilUnusable(1)
    for (const id of waited) {
      await untilDeferred(engine, id)
      expect(await engine.statusOf(id, isPutBack)).toMatchObject({ attempts: [0] })
      expect((await engine.timelineOf(id)).at(-1)?.detail).toContain(
        'The DNS resolver of this service refused the connection.',
      )
    }
    expect(server.connections).toBe(0)
    await restartResolver()
    await untilDone(engine, waited)
    for (const id of waited)
      expect(await engine.statusOf(id, isDone)).toMatchObject({ status: 'delivered', attempts: [1] })
  })
})
