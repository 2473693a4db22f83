import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import type { TestClient } from '../support/client.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Somebody who only receives the events knows as much as somebody who asks the API: whatever is done,
 * in whatever order, what the events add up to is what is there.
 */

let service: TestService
let client: TestClient

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
  client = service.client
})
afterAll(() => service.stop())

type Status = 'active' | 'unsubscribed'
/** Who is there, and who is on which list with which status. No event tells that a person is active again. */
type State = { people: Set<string>; contacts: Map<string, SubscriptionStatus> }

/** One call. Numbers stand for one of a few people and lists, so that calls meet. */
type Step =
  | { do: 'createPerson' | 'deletePerson' | 'unsubscribe'; person: number }
  | { do: 'setPerson'; person: number; status: Status }
  | { do: 'add' | 'remove'; person: number; list: number }
  | { do: 'setContact'; person: number; list: number; status: Status }
  | { do: 'deleteList'; list: number }

const person = fc.integer({ min: 0, max: 2 })
const list = fc.integer({ min: 0, max: 1 })
const status = fc.constantFrom<Status>('active', 'unsubscribed')

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constantFrom('createPerson', 'deletePerson', 'unsubscribe'), person }),
    fc.record({ do: fc.constant('setPerson'), person, status }),
    { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('add', 'remove'), person, list }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('setContact'), person, list, status }) },
    fc.record({ do: fc.constant('deleteList'), list }),
  ),
  { minLength: 5, maxLength: 25 },
)

/** The people and lists of one run, by their numbers. Those that are gone leave their ids behind. */
function createActors(run: number) {
  const people = new Map<number, string>()
  const lists = new Map<number, string>()
  const emailOf = (number: number) => `run${run}-person${number}@example.com`

  async function listId(number: number): Promise<string> {
    const known = lists.get(number)
    if (known !== undefined) return known
    const { id } = await client.succeed(contract.audiences.create, { body: { name: `Run ${run} list ${number}` } })
    lists.set(number, id)
    return id
  }

  /** Does a step, whether or not it is possible. */
  async function take(step: Step): Promise<void> {
    const id = 'person' in step ? (people.get(step.person) ?? 'sub_nobody') : ''
    switch (step.do) {
      case 'createPerson': {
        const email = emailOf(step.person)
        const answer = await client.call(contract.subscribers.create, { body: { email } })
        if (answer.status === 201) people.set(step.person, answer.body.id)
        return
      }
      case 'deletePerson':
        await client.call(contract.subscribers.delete, { params: { id } })
        return
      case 'unsubscribe':
        await client.call(contract.subscribers.unsubscribe, { params: { id }, body: {} })
        return
      case 'setPerson':
        await client.call(contract.subscribers.update, { params: { id }, body: { status: step.status } })
        return
      case 'add': {
        const body = { email: emailOf(step.person) }
        const answer = await client.call(contract.contacts.add, {
          params: { audienceId: await listId(step.list) },
          body,
        })
        if (answer.status === 201) people.set(step.person, answer.body.subscriberId)
        return
      }
      case 'remove':
        await client.call(contract.contacts.remove, {
          params: { audienceId: await listId(step.list), subscriberId: id },
        })
        return
      case 'setContact': {
        const params = { audienceId: await listId(step.list), subscriberId: id }
        await client.call(contract.contacts.update, { params, body: { status: step.status } })
        return
      }
      case 'deleteList':
        await client.call(contract.audiences.delete, { params: { id: await listId(step.list) } })
        lists.delete(step.list)
        return
    }
  }

  return { take }
}

/** Returns the state by the API. */
async function stateByApi(): Promise<State> {
  const state: State = { people: new Set(), contacts: new Map() }
  const query = { limit: 100 }
  for (const { id } of (await client.succeed(contract.subscribers.list, { query })).data) state.people.add(id)
  for (const { id } of (await client.succeed(contract.audiences.list, { query })).data) {
    const { data } = await client.succeed(contract.contacts.list, { params: { audienceId: id }, query })
    for (const contact of data) state.contacts.set(`${id} ${contact.subscriberId}`, contact.status)
  }
  return state
}

/** Returns the state by the events alone, from the first to the last. */
async function stateByEvents(): Promise<State> {
  const events: Record<string, unknown>[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = { limit: 100, ...(cursor !== '' && { cursor }) }
    const page: { data: typeof events; nextCursor: string | null } = await client.succeed(contract.events.list, {
      query,
    })
    events.push(...page.data)
    cursor = page.nextCursor
  }
  const state: State = { people: new Set(), contacts: new Map() }
  for (const event of events.toReversed()) apply(state, event)
  return state
}

function apply({ people, contacts }: State, event: Record<string, unknown>): void {
  const { subscriberId, audienceId, status, changes } = Object(event.data)
  const contact = `${audienceId} ${subscriberId}`
  switch (event.type) {
    case 'subscriber.added':
      people.add(subscriberId)
      return
    case 'subscriber.removed':
      people.delete(subscriberId)
      return
    case 'subscriber.unsubscribed':
      return
    case 'contact.created':
      contacts.set(contact, status)
      return
    case 'contact.updated':
      // It names what changed, and there are only two statuses.
      if (changes.includes('status'))
        contacts.set(contact, contacts.get(contact) === 'active' ? 'unsubscribed' : 'active')
      return
    case 'contact.deleted':
      contacts.delete(contact)
      return
    default:
      throw new Error(`nothing done here emits ${event.type}`)
  }
}

test('the events add up to what is there', async () => {
  let run = 0
  const property = fc.asyncProperty(steps, async (taken) => {
    const actors = createActors(++run)
    for (const step of taken) await actors.take(step)
    expect(await stateByEvents()).toEqual(await stateByApi())
    await clear()
  })
  await fc.assert(property, { seed: 20_260_301, numRuns: 25 })
})

/** So that lists stay within one page. */
async function clear(): Promise<void> {
  const query = { limit: 100 }
  const people = await client.succeed(contract.subscribers.list, { query })
  for (const { id } of people.data) await client.succeed(contract.subscribers.delete, { params: { id } })
  const lists = await client.succeed(contract.audiences.list, { query })
  for (const { id } of lists.data) await client.succeed(contract.audiences.delete, { params: { id } })
}
