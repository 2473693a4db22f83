import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { importLimits } from '../../contract/import-files.ts'
import { createUploadDecoder, NotDecodableError } from '../../server/imports/decode-upload.ts'
import { deleteEndedImports } from '../../server/imports/retention.ts'
import { createSuppressionService } from '../../server/suppressions/service.ts'
import { live } from '../support/scope.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createImportWorld, type ImportWorld } from '../support/worlds/imports.ts'

let world: ImportWorld

beforeAll(async () => {
  world = await createImportWorld()
  const { db, account, properties } = world
  await properties.create(db, account, { key: 'plan', type: 'string' })
  await properties.create(db, account, { key: 'seats', type: 'number' })
  await properties.create(db, account, { key: 'vip', type: 'boolean' })
  await properties.create(db, account, { key: 'born', type: 'date' })
})
afterAll(() => world.end())

const nobody = { firstName: null, lastName: null, status: 'active', properties: {} }

describe('a file', () => {
  test('a file is read by usual names of columns and keys of properties, each cell by its type', async () => {
    const file = [
      'E-Mail;First Name;Last_Name;plan;seats;vip;born;Colour',
      'ada@example.com;Ada;Lovelace;pro;2.5;Yes;1815-12-10;red',
      'grace@example.com;;;;;;1906-12-09 08:00:00;',
    ].join('\r\n')
    const found = await world.run(file)
    expect(found).toMatchObject({
      status: 'completed',
      delimiter: 'semicolon',
      encoding: 'utf-8',
      rowsRead: 2,
      created: 2,
      failed: 0,
      bytes: Buffer.byteLength(file),
      bytesRead: Buffer.byteLength(file),
    })
    expect(found.columns.at(-1)).toEqual({ column: 'Colour', field: 'ignore' })
    expect(await world.people(found.audienceId)).toEqual([
      {
        email: 'ada@example.com',
        firstName: 'Ada',
        lastName: 'Lovelace',
        status: 'active',
        properties: { plan: 'pro', seats: 2.5, vip: true, born: '1815-12-10' },
      },
      { ...nobody, email: 'grace@example.com', properties: { born: '1906-12-09' } },
    ])
  })

  test('a file is read as its columns are mapped', async () => {
    const mapping = { Kunde: 'email', Tarif: 'properties.plan', email: 'ignore', Wer: 'name' }
    const file = 'Kunde\tTarif\temail\tWer\nm1@example.com\tpro\tx\tAda King Lovelace\nm2@example.com\t\t\tBo\n'
    const { audienceId } = await world.run(file, { columns: mapping, status: 'unsubscribed' })
    expect(await world.people(audienceId)).toEqual([
      {
        email: 'm1@example.com',
        firstName: 'Ada',
        lastName: 'King Lovelace',
        status: 'unsubscribed',
        properties: { plan: 'pro' },
      },
      { ...nobody, email: 'm2@example.com', firstName: 'Bo', status: 'unsubscribed' },
    ])
  })

  test('a file with the status unsubscribed unsubscribes contacts who are there, with the conflict update alone', async () => {
    // As Listmonk exports those who left a list: the status is that of the person.
    const file = 'email,name,attributes,status\nleft@example.com,Ada,{},enabled\nnew@example.com,Bo,{},enabled\n'
    const { audienceId } = await world.run('email\nleft@example.com\nstays@example.com\n')
    const statuses = async () => (await world.people(audienceId)).map(({ email, status }) => [email, status])
    const [left, stays] = ['left@example.com', 'stays@example.com']
    await world.run(file, { audienceId, status: 'unsubscribed' })
    const added = [['new@example.com', 'unsubscribed']]
    expect((await statuses()).toSorted()).toEqual([[left, 'active'], ...added, [stays, 'active']])
    await world.run(file, { audienceId, status: 'unsubscribed', conflict: 'update' })
    expect((await statuses()).toSorted()).toEqual([[left, 'unsubscribed'], ...added, [stays, 'active']])
  })

  test.each<[string, string, object]>([
    ['empty', '', {}],
    ['with two columns of one name', 'email,x,x\na@example.com,1,2', {}],
    ['without a column of addresses', 'who,what\na,b', {}],
    ['with too many columns', Array.from({ length: 10_000 }, (_, n) => `c${n}`).join(','), {}],
    ['with a head that does not end', `email,"${'x'.repeat(300_000)}`, {}],
    ['with a mapped column that is not there', 'email\na@example.com', { columns: { Email: 'email' } }],
    ['with a field that is not there', 'email,x\na@example.com,1', { columns: { x: 'properties.age' } }],
    ['with two columns of one field', 'email,x\na@example.com,1', { columns: { x: 'email', email: 'email' } }],
    ['that is not UTF-8 though it says so', Buffer.from([0x65, 0xff, 0xfe]).toString('latin1'), { encoding: 'utf-8' }],
  ])('%s is refused at once', async (name, file, options) => {
    const bytes = name.includes('UTF-8') ? Buffer.from(file, 'latin1') : Buffer.from(file)
    expect(await refusal(world.upload(bytes, options))).toBe('rule_violation')
    const { data } = await world.imports.list(world.db, world.scopeOf(), { limit: 100 })
    expect(data.every(({ status }) => status !== 'uploading')).toBe(true)
  })

  test('a file for an audience that is not there, or of another account, is refused', async () => {
    const { db, stranger, audiences, upload } = world
    const theirs = await audiences.create(db, live(stranger), { name: 'Theirs' })
    expect(await refusal(upload('email\n', { audienceId: theirs.id }))).toBe('audience_not_found')
  })

  /** Decodes a file that arrives in two pieces. Returns null if it is refused. */
  function readInTwo(file: Buffer, cut: number): { encoding: string; text: string } | null {
    const decoder = createUploadDecoder(undefined)
    try {
      const text = decoder.write(file.subarray(0, cut)) + decoder.write(file.subarray(cut)) + decoder.end()
      return { encoding: decoder.encoding, text }
    } catch (error) {
      if (error instanceof NotDecodableError) return null
      throw error
    }
  }

  test.each<[string, Buffer, { encoding: string; text: string } | null]>([
    [
      'that is UTF-8 before a byte that is not',
      Buffer.from('email,plan\na,Mü \xff\n'.replace('ü', 'Ã¼'), 'latin1'),
      null,
    ],
    ['that is UTF-8 before a character that does not end', Buffer.from('email\nâ\x82¬ z\xc3', 'latin1'), null],
    [
      'whose first byte beyond ASCII is none of UTF-8, and later ones are',
      Buffer.from('email,plan\na,M\xff Ã¼\n', 'latin1'),
      { encoding: 'windows-1252', text: 'email,plan\na,Mÿ Ã¼\n' },
    ],
    [
      'whose last byte begins a character',
      Buffer.from('email\nM\xc3', 'latin1'),
      { encoding: 'windows-1252', text: 'email\nMÃ' },
    ],
    ['that is UTF-8', Buffer.from('email\nü€😀'), { encoding: 'utf-8', text: 'email\nü€😀' }],
  ])('a file %s is read or refused alike, wherever it is cut', (_, file, expected) => {
    for (let cut = 0; cut <= file.length; cut++) expect([cut, readInTwo(file, cut)]).toEqual([cut, expected])
  })

  test('a file in pieces of any size and in any encoding is the same file', async () => {
    const text = 'email,plan\nz1@example.com,Müller €\nz2@example.com,naïve\n'
    const utf16 = Buffer.from(`\ufeff${text}`, 'utf16le')
    const files: [string, Buffer, object][] = [
      ['utf-8', Buffer.from(text), {}],
      ['utf-8', Buffer.from(`\ufeff${text}`), {}],
      ['utf-16le', utf16, {}],
      ['utf-16le', utf16.subarray(2), {}],
      ['utf-16be', Buffer.from(utf16).swap16(), {}],
      ['windows-1252', Buffer.from(text.replace('€', '\x80'), 'latin1'), {}],
      ['windows-1252', Buffer.from(text.replace('€', '\x80'), 'latin1'), { encoding: 'windows-1252' }],
    ]
    for (const [encoding, file, options] of files) {
      for (const pieceBytes of [1, 3, 1_000]) {
        const decoder = createUploadDecoder(Object(options).encoding)
        let read = ''
        for (let at = 0; at < file.length; at += pieceBytes) read += decoder.write(file.subarray(at, at + pieceBytes))
        read += decoder.end()
        expect([decoder.encoding, read.replace(/^\ufeff/, '')]).toEqual([encoding, text])
      }
    }
    const found = await world.run(utf16, { pieceBytes: 7 })
    expect(found.encoding).toBe('utf-16le')
    expect((await world.people(found.audienceId)).map(({ properties }) => properties)).toEqual([
      { plan: 'Müller €' },
      { plan: 'naïve' },
    ])
  })
})

test('rows that are wrong are counted and shown with their reason, and the others are taken', async () => {
  const file = [
    'email,first_name,seats,status',
    'r1@example.com,Ada,1,active',
    'no address,Ada,1,',
    ',Ada,1,',
    'r2@example.com,Ada,many,',
    'r3@example.com,Ada',
    'r4@example.com,Ada,1,,5',
    'r5@example.com,Ada,1,gone',
    'r6@example.com,"A\u0000da",1,',
    `r7@example.com,${'x'.repeat(201)},1,`,
    '=cmd()@x,"=HYPERLINK(""http://x"")",-1,',
    '"r8@example.com","Ada, ""the first""\nof all",3,',
  ].join('\n')
  const found = await world.run(file)
  expect(found).toMatchObject({ status: 'completed', rowsRead: 11, created: 2, failed: 9 })
  const rows = await world.failedRows(found.id)
  expect(rows[0]).toBe('email,first_name,seats,status,import_row,import_reason')
  expect(rows).toHaveLength(10)
  expect(rows.find((row) => row.includes('no address,'))).toMatch(/,2,the address is not an email address$/)
  expect(rows.find((row) => row.startsWith('r2@'))).toMatch(/,4,"seats must be a number, such as 12.5"$/)
  expect(rows.find((row) => row.startsWith('r3@'))).toMatch(/the row has 2 cells, and the head has 4/)
  expect(rows.find((row) => row.includes('HYPERLINK'))).toMatch(/^'=cmd\(\)@x,"'=HYPERLINK\(""http:\/\/x""\)",-1,,10,/)
  expect((await world.people(found.audienceId)).at(-1)).toMatchObject({ firstName: 'Ada, "the first"\nof all' })
})

test('rows are separated by any line breaks, also mixed ones, and empty lines are none', async () => {
  const found = await world.run('email\r\n\r\nl1@example.com\nl2@example.com\rl3@example.com\n\n\r\n')
  expect(found).toMatchObject({ status: 'completed', rowsRead: 3, created: 3 })
  expect(found.bytesRead).toBe(found.bytes)
})

test('rows with one address are one contact, in one batch and in several', async () => {
  const names = ['Ada', 'Eve', 'Eve', 'Ida', 'Ida', 'Una']
  const file = ['email,first_name', ...names.map((name, n) => `${n % 2 ? 'D1' : 'd1'}@example.com,${name}`)].join('\n')
  const updated = await world.run(file, { conflict: 'update' })
  expect(updated).toMatchObject({ rowsRead: 6, created: 1, updated: 3, skipped: 2 })
  expect(await world.people(updated.audienceId)).toEqual([{ ...nobody, email: 'd1@example.com', firstName: 'Una' }])
  const skipped = await world.run(file.replaceAll(/d1@/gi, 'd2@'))
  expect(skipped).toMatchObject({ rowsRead: 6, created: 1, updated: 0, skipped: 5 })
  expect(await world.people(skipped.audienceId)).toMatchObject([{ firstName: 'Ada' }])
})

test('rows behind a quotation mark that is not closed end the import, and those before stay', async () => {
  const before = 'email,plan\nq1@example.com,a\nq2@example.com,b\n'
  const open = await world.run(`${before}q3@example.com,"x\nq4@example.com,b`)
  expect(open).toMatchObject({ status: 'failed', created: 2, rowsRead: 2 })
  expect(open.failureReason).toMatch(/^behind row 2: Quote Not Closed/)
  const huge = await world.run(`${before}q3@example.com,"${'x'.repeat(importLimits.rowCharacters + 10)}`)
  expect(huge).toMatchObject({ status: 'failed', rowsRead: 2, created: 2 })
  expect(huge.failureReason).toContain('quotation mark')
})

test('rows of people who unsubscribed or bounced go to the suppression list, and are no subscribers', async () => {
  const { db, account, subscribers } = world
  const file = 'email,status\nu1@example.com,unsubscribed\nu2@example.com,cleaned\nu3@example.com,subscribed\n'
  const found = await world.run(file)
  expect(found).toMatchObject({ rowsRead: 3, created: 1, suppressed: 2 })
  const suppressions = createSuppressionService(world)
  expect(await suppressions.get(db, account, 'u1@example.com')).toMatchObject({
    reason: 'unsubscribe',
    source: 'api',
  })
  expect(await suppressions.get(db, account, 'u2@example.com')).toMatchObject({ reason: 'hard_bounce' })
  expect((await subscribers.list(db, account, { email: 'u1@example.com', limit: 1 })).data).toEqual([])
  const test = await world.run(file, { mode: 'test' })
  expect(test).toMatchObject({ rowsRead: 3, skipped: 0, created: 1, suppressed: 0, failed: 2 })
  expect((await world.failedRows(test.id, 'test'))[1]).toContain('needs a live key')
})

test('rows of an export of Mailchimp or Listmonk are known by their head', async () => {
  const { db, account } = world
  const suppressions = createSuppressionService(world)
  const gone = 'Email Address,First Name,Last Name,UNSUB_TIME,LEID\nmc1@example.com,Ada,L,2026-01-01 10:00:00,1\n'
  expect(await world.run(gone)).toMatchObject({ created: 0, suppressed: 1 })
  expect(await suppressions.get(db, account, 'mc1@example.com')).toMatchObject({ reason: 'unsubscribe' })
  const cleaned = gone.replace('UNSUB_TIME', 'CLEAN_TIME').replace('mc1', 'mc2')
  expect(await world.run(cleaned)).toMatchObject({ created: 0, suppressed: 1 })
  expect(await suppressions.get(db, account, 'mc2@example.com')).toMatchObject({ reason: 'hard_bounce' })
  const listmonk = [
    'uuid,email,name,attributes,status,created_at,updated_at',
    'x,lm1@example.com,Ada Lovelace,"{""plan"": ""pro"", ""seats"": 3, ""city"": ""London""}",enabled,,',
    'y,lm2@example.com,Bo,{},blocklisted,,',
  ].join('\n')
  const found = await world.run(listmonk)
  expect(found).toMatchObject({ created: 1, suppressed: 1, failed: 0 })
  expect(await world.people(found.audienceId)).toEqual([
    {
      email: 'lm1@example.com',
      firstName: 'Ada',
      lastName: 'Lovelace',
      status: 'active',
      properties: { plan: 'pro', seats: 3 },
    },
  ])
})

const many = (name: string, count: number) =>
  ['email', ...Array.from({ length: count }, (_, n) => `${name}-${n}@example.com`)].join('\n')

test('an import causes the events of its rows, or none where it shall not', async () => {
  const { outbox, startWorker, upload, ended, emitted } = world
  await emitted()
  for (const events of ['true', 'false'] as const) {
    const { id } = await upload(many(`events-${events}`, 3), { events })
    const worker = startWorker({ outbox })
    await ended(id)
    await worker.stop()
    const types = (await emitted()).map(([type]) => type)
    expect(types).toHaveLength(events === 'true' ? 6 : 0)
  }
})

test('an import is gone on with by another worker where one has died, and no row is done twice', async () => {
  const { startWorker, upload, ended, imports, db, scopeOf, moveClock, contacts, account } = world
  const { id, audienceId } = await upload(many('killed', 100))
  const { promise: some, resolve } = Promise.withResolvers<void>()
  let batches = 0
  // Hangs in the middle for ever, as a process that was killed.
  const dead = startWorker({
    batchRows: 7,
    onBatch: () => {
      if (++batches === 5) {
        resolve()
        throw new Error('killed')
      }
    },
  })
  await some
  await dead.stop()
  const middle = await imports.get(db, scopeOf(), id)
  expect(middle.rowsRead).toBeGreaterThanOrEqual(35)
  expect(middle.rowsRead).toBeLessThan(100)
  moveClock(60_000)
  const other = startWorker({ batchRows: 9 })
  expect(await ended(id)).toMatchObject({ status: 'completed', rowsRead: 100, created: 100, skipped: 0 })
  await other.stop()
  expect((await contacts.list(db, account, audienceId, { limit: 101 })).data).toHaveLength(100)
})

test('an import that is canceled in the middle reads no more rows, and its counts are what was done', async () => {
  const { startWorker, upload, imports, db, scopeOf, contacts, account } = world
  const { id, audienceId } = await upload(many('canceled', 100))
  const { promise: canceled, resolve } = Promise.withResolvers<void>()
  let batches = 0
  const worker = startWorker({
    batchRows: 5,
    onBatch: () => {
      if (++batches === 3) void imports.cancel(db, scopeOf(), id).then(() => resolve())
    },
  })
  await canceled
  await worker.stop()
  const found = await imports.get(db, scopeOf(), id)
  expect(found.status).toBe('canceled')
  expect((await contacts.list(db, account, audienceId, { limit: 101 })).data).toHaveLength(found.created)
  expect(found.rowsRead).toBe(found.created)
  expect(await imports.cancel(db, scopeOf(), id)).toEqual(found)
})

test('an import into an audience that was deleted fails and says so', async () => {
  const { db, account, audiences, upload, startWorker, ended } = world
  const { id, audienceId } = await upload(many('nowhere', 5))
  await audiences.delete(db, live(account), audienceId)
  const worker = startWorker()
  expect(await ended(id)).toMatchObject({ status: 'failed', failureReason: 'the audience was deleted', rowsRead: 0 })
  await worker.stop()
})

test('an import is seen by its account and mode alone, and five of an account may be unfinished', async () => {
  const { db, stranger, imports, upload, scopeOf, clock } = world
  const uploads = await Promise.all(Array.from({ length: 5 }, () => upload(many('waiting', 2))))
  expect(await refusal(upload('email\n'))).toBe('conflict')
  const [first] = uploads
  const id = first?.id ?? ''
  for (const scope of [scopeOf('test'), scopeOf('live', stranger)]) {
    expect(await refusal(imports.get(db, scope, id))).toBe('not_found')
    expect(await refusal(imports.cancel(db, scope, id))).toBe('not_found')
    expect(await refusal(imports.failedRows(db, scope, id))).toBe('not_found')
  }
  for (const one of uploads) await imports.cancel(db, scopeOf(), one.id)
  await deleteEndedImports({ db, clock })
  expect(await db.selectFrom('import_chunks').select('position').where('import_id', '=', id).execute()).toEqual([])
})

test('an import whose file breaks off leaves nothing', async () => {
  const { db, account, audiences, imports, scopeOf } = world
  const { id: audienceId } = await audiences.create(db, live(account), { name: 'News' })
  async function* broken() {
    yield Buffer.from(many('broken', 20_000))
    throw new Error('the client is gone')
  }
  await expect(imports.create(db, scopeOf(), { audienceId }, broken())).rejects.toThrow('the client is gone')
  const { data } = await imports.list(db, scopeOf(), { limit: 100 })
  expect(data.filter((one) => one.audienceId === audienceId)).toEqual([])
})
