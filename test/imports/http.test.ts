import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { contract } from '../../contract/index.ts'
import { openExercisedLog } from '../support/exercised.ts'
import { patienceMs } from '../support/patience.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { zipOf } from '../support/zip.ts'

let service: TestService
let audienceId: string
const csv = { 'content-type': 'text/csv' }

beforeAll(async () => {
  service = await startTestService()
  audienceId = (await service.client.succeed(contract.audiences.create, { body: { name: 'News' } })).id
  const plan = { key: 'plan', type: 'string' as const }
  await service.client.succeed(contract.contactProperties.create, { body: plan })
  expect(await service.client.call(contract.contactProperties.create, { body: plan })).toMatchObject({ status: 409 })
})
afterAll(() => service.stop())

const send = (raw: string | Buffer, headers: Record<string, string> = csv) =>
  service.client.send('POST', `/v1/imports?audienceId=${audienceId}`, { raw, headers })

test('a file is imported, and the audience exported with formulas made harmless', async () => {
  const { client } = service
  const sent = await send('email,first_name,plan\nada@example.com,=1+1,pro\nnobody,,\n')
  expect(sent.status).toBe(202)
  const { id } = Object(sent.body)
  const since = performance.now()
  const found = async () => client.succeed(contract.imports.get, { params: { id } })
  while ((await found()).status !== 'completed' && performance.now() - since < patienceMs) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect(await found()).toMatchObject({ status: 'completed', rowsRead: 2, created: 1, failed: 1 })
  const failed = await client.send('GET', `/v1/imports/${id}/failed-rows`)
  expect(failed.text).toContain('nobody,,,2,the address is not an email address')
  const exported = await client.send('GET', `/v1/audiences/${audienceId}/contacts/export`)
  const [head, row] = exported.text.split('\r\n')
  expect(head).toBe('email,first_name,last_name,status,created_at,plan')
  expect(row).toMatch(/^ada@example\.com,'=1\+1,,active,[^,]+,pro$/)
})

test('what is no file, or too large a file, is refused before it is read', async () => {
  expect(await send('{}', { 'content-type': 'application/json' })).toMatchObject({ status: 415 })
  expect(await send('email', { ...csv, 'content-encoding': 'gzip' })).toMatchObject({ status: 415 })
})

test('a ZIP is told from its bytes, whatever it is sent as, and a workbook is refused with what to do instead', async () => {
  const { client } = service
  const zip = zipOf([{ name: 'subscribed_export.csv', content: 'email\nzip@example.com\n' }])
  const types = ['application/zip', 'text/csv']
  for (const [place, type] of types.entries()) {
    const sent = await send(zip, { 'content-type': type })
    expect(sent).toMatchObject({ status: 202, body: { files: [{ readAs: 'contacts' }] } })
    const { id } = Object(sent.body)
    await vi.waitFor(
      async () =>
        expect(await client.succeed(contract.imports.get, { params: { id } })).toMatchObject({
          status: 'completed',
          ...(place === 0 ? { created: 1 } : { skipped: 1 }),
        }),
      { timeout: patienceMs },
    )
  }
  expect(await send('email\ncsv@example.com\n', { 'content-type': 'application/zip' })).toMatchObject({ status: 202 })
  const answer = await send(zipOf([{ name: '[Content_Types].xml', content: '<Types/>' }]))
  expect(answer.status).toBe(422)
  expect(answer.text).toContain('save the table as CSV')
})

test('a file that says it is too large is refused before it is sent', async () => {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  socket.write(
    `POST /v1/imports?audienceId=${audienceId} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${service.keys.live}\r\nContent-Type: text/csv\r\nContent-Length: 1073741825\r\n\r\n`,
  )
  const [answer] = await once(socket, 'data')
  socket.destroy()
  expect(String(answer)).toMatch(/^HTTP\/1\.1 413 /)
  openExercisedLog(inject('exercisedDirectory')).add('createImport', 413)
})

test('of an account five imports may be unfinished', async () => {
  await using beside = await startTestService({ roles: { worker: false } })
  const { id } = await beside.client.succeed(contract.audiences.create, { body: { name: 'News' } })
  const file = { raw: 'email\n', headers: csv }
  const statuses: number[] = []
  for (let n = 0; n < 6; n++) {
    statuses.push((await beside.client.send('POST', `/v1/imports?audienceId=${id}`, file)).status)
  }
  expect(statuses).toEqual([202, 202, 202, 202, 202, 409])
})
