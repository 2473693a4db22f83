import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { deadUrl } from '../support/fixtures.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
})
afterAll(() => service?.stop())

const email = { from: 'hello@example.com', to: 'ada@example.org', subject: 'Welcome', text: 'Hello' }
const hook = { url: deadUrl, events: ['contact.created'] }
const odd = { 'a b': 'é😀', '(x)': '', constructor: 'c' }

const kinds = {
  emails: {
    path: '/v1/emails',
    key: () => service.keys.test,
    body: (metadata: unknown) => ({ ...email, metadata }),
  },
  webhooks: {
    path: '/v1/webhooks',
    key: () => service.keys.live,
    body: (metadata: unknown) => ({ ...hook, metadata }),
  },
}

describe.each(Object.entries(kinds))('metadata of %s', (_, { path, key, body }) => {
  const send = (method: 'GET' | 'POST' | 'PATCH', to: string, json?: object) =>
    service.client.send(method, to, { key: key(), ...(json && { json }) })
  async function create(metadata: unknown): Promise<string> {
    const answer = await send('POST', path, body(metadata))
    expect(answer.status).toBeLessThan(300)
    return Object(answer.body).id
  }
  async function idsOf(query: string): Promise<string[]> {
    const { status, body: page } = await send('GET', `${path}?${query}`)
    expect(status).toBe(200)
    return Object(page).data.map(({ id }: { id: string }) => id)
  }

  test('metadata is kept and shown as it was given, and empty where none was', async () => {
    const ids = [await create(odd), await create(undefined)]
    const shown = await Promise.all(ids.map((id) => send('GET', `${path}/${id}`)))
    expect(shown.map((answer) => Object(answer.body).metadata)).toEqual([odd, {}])
    const { body: page } = await send('GET', `${path}?limit=2`)
    expect(Object(page).data.map(({ metadata }: { metadata: object }) => metadata)).toEqual([{}, odd])
  })

  test('a filter by metadata finds what has all the pairs, newest first, page by page', async () => {
    const [first, second, third] = [
      await create({ customer: '42', plan: 'pro' }),
      await create({ customer: '42' }),
      await create({ customer: '43', plan: 'pro' }),
    ]
    expect(await idsOf('metadata[customer]=42')).toEqual([second, first])
    expect(await idsOf('metadata%5Bplan%5D=pro')).toEqual([third, first])
    expect(await idsOf('metadata[customer]=42&metadata[plan]=pro')).toEqual([first])
    expect(await idsOf('metadata[customer]=4')).toEqual([])
    const { body: page } = await send('GET', `${path}?metadata[customer]=42&limit=1`)
    expect(await idsOf(`metadata[customer]=42&limit=1&cursor=${Object(page).nextCursor}`)).toEqual([first])
  })

  test('a filter by metadata finds pairs by odd names', async () => {
    const names = ['a\n', '"', '.', 'a=b&c', '\u001f^']
    const ids = await Promise.all(names.map((name) => create({ [name]: 'found' })))
    const found = await Promise.all(names.map((name) => idsOf(`metadata[${encodeURIComponent(name)}]=found`)))
    expect(found).toEqual(ids.map((id) => [id]))
  })

  test('a filter by metadata shows nothing of another account', async () => {
    await create({ customer: 'mine' })
    const answer = await service.client.send('GET', `${path}?metadata[customer]=mine`, { key: service.keys.other })
    expect(answer).toMatchObject({ status: 200, body: { data: [] } })
  })

  const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`name${i}`, 'v']))

  test('metadata may be as large as is said', async () => {
    await create({ ...pairs(19), ['é'.repeat(40)]: '😀'.repeat(500) })
  })

  test.each<[string, unknown, number]>([
    ['21 pairs', pairs(21), 400],
    ['a name of 41 characters', { ['x'.repeat(41)]: '' }, 400],
    ['an empty name', { '': 'x' }, 400],
    ['a bracket in a name', { 'a]': 'x' }, 400],
    ['a value of 501 characters', { x: 'y'.repeat(501) }, 400],
    ['a value that is no text', { x: 1 }, 400],
    ['a value of null', { x: null }, 400],
    ['U+0000 in a value', { x: '\u0000' }, 400],
    ['U+0000 in a name', { '\u0000': 'x' }, 400],
    ['a list', ['x'], 400],
    ['a name that objects have', JSON.parse('{"__proto__":"x"}'), 422],
  ])('metadata is refused with %s', async (_, metadata, status) => {
    const answer = await send('POST', path, body(metadata))
    expect([answer.status, Object(answer.body).error.details[0].path]).toEqual([
      status,
      expect.stringMatching(/^body\.metadata/),
    ])
  })

  test.each([
    ['metadata=x', 400],
    ['metadata[x]=1&metadata[x]=2', 400],
    ['metadata=x&metadata[y]=1', 400],
    ['metadata[]=1', 400],
    ['metadata[a][b]=1', 400],
    ['metadata[a%1f][][0]=1', 400],
    ['metadata[[a]=1', 400],
    ['metadata[a]]=1', 400],
    [`metadata[x]=${'y'.repeat(501)}`, 400],
    ['metadata[__proto__]=1', 422],
    ['other[x]=1', 400],
  ])('metadata is no filter as %s', async (query, status) => {
    expect((await send('GET', `${path}?${query}`)).status).toBe(status)
  })

  test('metadata without a name is refused with the form that a filter has', async () => {
    const { body: refused } = await send('GET', `${path}?metadata=x`)
    expect(Object(refused).error.details).toEqual([
      { path: 'query.metadata', message: 'must be given as metadata[name]=value' },
    ])
  })
})

test('the metadata of a webhook is replaced by a change, and stays with any other', async () => {
  const { client } = service
  const change = async (id: string, json: object) => {
    const answer = await client.send('PATCH', `/v1/webhooks/${id}`, { json })
    return Object(answer.body).metadata
  }
  const { id } = await client.succeed(contract.webhooks.create, {
    body: { url: deadUrl, events: ['contact.created'], metadata: { a: '1', b: '2' } },
  })
  expect(await change(id, { description: 'x' })).toEqual({ a: '1', b: '2' })
  expect(await change(id, { metadata: { a: '2' } })).toEqual({ a: '2' })
  expect(await change(id, { metadata: {} })).toEqual({})
})

test('each email of a batch has its own metadata', async () => {
  const emails = ['one', 'two'].map((batch) => ({ ...email, metadata: { batch } }))
  const sent = await service.client.send('POST', '/v1/emails/batch', { key: service.keys.test, json: { emails } })
  const ids = Object(sent.body).data.map(({ id }: { id: string }) => id)
  const { body } = await service.client.send('GET', '/v1/emails?metadata[batch]=two', { key: service.keys.test })
  expect(Object(body).data).toMatchObject([{ id: ids[1], metadata: { batch: 'two' } }])
})
