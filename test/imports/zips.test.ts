import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { importLimits } from '../../contract/import-files.ts'
import { chunkBytes } from '../../server/imports/store-upload.ts'
import { DomainError } from '../../server/shared/errors.ts'
import { createSuppressionService } from '../../server/suppressions/service.ts'
import { createImportWorld, type ImportWorld } from '../support/worlds/imports.ts'
import { csvFile, type ZippedFile, zipOf } from '../support/zip.ts'

let world: ImportWorld

beforeAll(async () => {
  world = await createImportWorld()
  await world.properties.create(world.db, world.account, { key: 'plan', type: 'string' })
})
afterAll(() => world.end())

const head = 'Email Address,First Name,Last Name'
const subscribed = (...names: string[]) => ({
  name: 'subscribed_segment_export_8893e1ae2e.csv',
  content: `${head},OPTIN_TIME\n${names.map((name) => `${name}@example.com,Ada,L,2026-01-01\n`).join('')}`,
})
const unsubscribed = (...names: string[]) => ({
  name: 'unsubscribed_segment_export_8893e1ae2e.csv',
  content: `${head},UNSUB_TIME\n${names.map((name) => `${name}@example.com,Bo,L,2026-02-01\n`).join('')}`,
})
const cleaned = (...names: string[]) => ({
  name: 'cleaned_segment_export_8893e1ae2e.csv',
  content: `${head},CLEAN_TIME\n${names.map((name) => `${name}@example.com,Cy,L,2026-02-01\n`).join('')}`,
})
const addressesOf = async (audienceId: string) =>
  (await world.people(audienceId)).map(({ email }) => email.split('@')[0])

/** Returns what is wrong with a file. */
async function faultOf(files: readonly ZippedFile[] | Buffer, options = {}): Promise<string> {
  const error = await world.upload(Buffer.isBuffer(files) ? files : zipOf(files), options).catch((thrown) => thrown)
  if (!(error instanceof DomainError)) throw new Error(`it was taken: ${JSON.stringify(error)}`)
  return `${error.code}: ${error.message}`
}

test.each(['first', 'last'])(
  'a ZIP of Mailchimp, with people who left in the %s files, puts them on the suppression list and nowhere else',
  async (where) => {
    const { db, account, subscribers } = world
    const of = (name: string) => `${name}-${where}`
    const left = [unsubscribed(of('left'), of('both')), cleaned(of('bounced'), of('gone'))]
    const there = subscribed(of('there'), of('both'), of('gone'), of('here'))
    const never = { ...csvFile('nonsubscribed_email_audience_export_1.csv', of('never')) }
    const files = where === 'first' ? [...left, there, never] : [never, there, ...left]
    const found = await world.run(zipOf(files), { fileName: 'export.zip' })
    expect(found).toMatchObject({ status: 'completed', rowsRead: 8, created: 2, suppressed: 6, failed: 0 })
    expect(found.bytesRead).toBe(found.bytes)
    expect(await addressesOf(found.audienceId)).toEqual([of('there'), of('here')])
    const suppressions = createSuppressionService(world)
    expect(await suppressions.get(db, account, `${of('both')}@example.com`)).toMatchObject({ reason: 'unsubscribe' })
    expect(await suppressions.get(db, account, `${of('gone')}@example.com`)).toMatchObject({ reason: 'hard_bounce' })
    for (const name of ['left', 'both', 'bounced', 'gone', 'never']) {
      const email = `${of(name)}@example.com`
      expect((await subscribers.list(db, account, { email, limit: 1 })).data).toEqual([])
    }
    expect(found.files.map(({ name, readAs }) => [name.split('_')[0], readAs])).toEqual([
      ['unsubscribed', 'unsubscribe'],
      ['cleaned', 'hard_bounce'],
      ['subscribed', 'contacts'],
      ['nonsubscribed', 'ignored'],
    ])
    expect(found.columns.map(({ column }) => column)).toContain('OPTIN_TIME')
  },
)

test('a ZIP knows who left by the name of the file where no column says so, and by a status before other files', async () => {
  const found = await world.run(
    zipOf([
      csvFile('lists/all.csv', 'n1', 'n2', 'n3'),
      csvFile('lists/Unsubscribed.csv', 'n1'),
      { name: 'subscribers.csv', content: 'uuid,email,name,attributes,status\nx,n2@example.com,Bo,{},blocklisted\n' },
    ]),
  )
  expect(found).toMatchObject({ created: 1, suppressed: 4 })
  expect(await addressesOf(found.audienceId)).toEqual(['n3'])
})

test('a ZIP keeps a contact of one file with a status who left by the next, and suppresses them', async () => {
  const listmonk = (name: string, status: string) => ({
    name,
    content: `uuid,email,name,attributes,status\nx,twice@example.com,Bo,{},${status}\n`,
  })
  const found = await world.run(zipOf([listmonk('1.csv', 'enabled'), listmonk('2.csv', 'blocklisted')]))
  expect(found).toMatchObject({ created: 1, suppressed: 1, failed: 0 })
  expect(await addressesOf(found.audienceId)).toEqual(['twice'])
  const suppressed = await createSuppressionService(world).get(world.db, world.account, 'twice@example.com')
  expect(suppressed).toMatchObject({ reason: 'unsubscribe' })
})

test('a ZIP of many pieces is the same file', async () => {
  const notes = Array.from({ length: 12 }, (_, n) => randomBytes(100_000).toString('base64') + n)
  const content = (name: string) =>
    `email,plan,note\n${notes.map((note, n) => `${name}${n}@example.com,${n},${note}\n`).join('')}`
  const zip = zipOf([
    { name: 'a.csv', content: content('pa'), method: 0 },
    { name: 'b.csv', content: content('pb') },
  ])
  expect(zip.length).toBeGreaterThan(2 * chunkBytes)
  const found = await world.run(zip)
  expect(found).toMatchObject({ status: 'completed', rowsRead: 24, created: 24 })
  expect((await world.people(found.audienceId)).map(({ properties }) => properties.plan)).toEqual([
    ...notes.keys().map(String),
    ...notes.keys().map(String),
  ])
})

test('a ZIP of Listmonk is read with its properties', async () => {
  const content = [
    'uuid,email,name,attributes,status,created_at,updated_at',
    'x,z1@example.com,Ada Lovelace,"{""plan"": ""pro""}",enabled,,',
    'y,z2@example.com,Bo,{},blocklisted,,',
  ].join('\n')
  const found = await world.run(zipOf([{ name: 'subscribers.csv', content }]))
  expect(found).toMatchObject({ created: 1, suppressed: 1, failed: 0 })
  expect(await world.people(found.audienceId)).toMatchObject([{ firstName: 'Ada', properties: { plan: 'pro' } }])
})

test('a ZIP has files of other encodings, separators, ways of writing and empty ones, each read as it is', async () => {
  const found = await world.run(
    zipOf([
      { name: 'a.csv', content: Buffer.from('email;plan\ne1@example.com;M\xfcller\n', 'latin1'), method: 0 },
      {
        name: 'b.tsv',
        content: Buffer.from('\ufeffemail\tplan\ne2@example.com\tzwei', 'utf16le'),
        hasDescriptor: true,
      },
      { name: 'c.csv', content: 'plan,email\n' },
      { name: 'nothing.csv', content: '' },
      { name: 'd.csv', content: 'plan,email\nvier,e4@example.com\n\n\n', isZip64: true },
      { name: 'readme.txt', content: 'Hello, "you\nwho, read, this' },
      { name: 'folder/', content: '', method: 0 },
      { name: '__MACOSX/._a.csv', content: '\u0000\u0005\u0016\u0007' },
      { name: 'campaigns.csv', content: 'subject,sent\nNews,3\n' },
      { name: 'inner.csv', content: zipOf([csvFile('x.csv', 'inner')]) },
      { name: 'logo.png', content: 'PNG' },
    ]),
    { pieceBytes: 7 },
  )
  expect(found).toMatchObject({ status: 'completed', rowsRead: 3, created: 3, failed: 0 })
  expect((await world.people(found.audienceId)).map(({ properties }) => properties)).toEqual([
    { plan: 'Müller' },
    { plan: 'zwei' },
    { plan: 'vier' },
  ])
  expect(found.files.map(({ name, ignoredBecause }) => [name, ignoredBecause])).toEqual([
    ['a.csv', null],
    ['b.tsv', null],
    ['c.csv', null],
    ['d.csv', null],
    ['logo.png', 'it is no CSV file'],
    ['nothing.csv', 'it is empty'],
    ['readme.txt', 'it is no CSV file'],
    ['campaigns.csv', 'none of its columns has addresses'],
    ['inner.csv', 'it is an archive or a workbook: unpack it and send what is in it'],
  ])
})

test('a ZIP has its columns mapped in the files that have them', async () => {
  const files = [
    { name: 'a.csv', content: 'Kunde,email\nm1@example.com,x\n' },
    { name: 'b.csv', content: 'email\nm2@example.com\n' },
  ]
  const found = await world.run(zipOf(files), { columns: { Kunde: 'email' }, status: 'unsubscribed' })
  expect(await world.people(found.audienceId)).toMatchObject([
    { email: 'm1@example.com', status: 'unsubscribed' },
    { email: 'm2@example.com', status: 'unsubscribed' },
  ])
  expect(await faultOf(files, { columns: { Kundin: 'email' } })).toContain('query.columns.Kundin: is no column')
})

test('a ZIP names files and rows of what failed, in a file that means the same when it is imported', async () => {
  const bad = { ...subscribed('f1'), content: `${head}\nf1@example.com,Ada,L\nnobody,Eve,L\nf2@example.com,Ada\n` }
  const left = {
    ...unsubscribed(),
    content: 'Email Address,UNSUB_TIME\nf3@example.com,2026-01-01\nnone,2026-01-02\n',
  }
  const found = await world.run(zipOf([bad, left]))
  expect(found).toMatchObject({ rowsRead: 5, created: 1, suppressed: 1, failed: 3 })
  const rows = await world.failedRows(found.id)
  expect(rows).toEqual([
    'Email Address,First Name,Last Name,status,import_file,import_row,import_reason',
    `none,,,unsubscribed,${left.name},2,the address is not an email address`,
    `nobody,Eve,L,,${bad.name},2,the address is not an email address`,
    `f2@example.com,Ada,,,${bad.name},3,"the row has 2 cells, and the head has 3"`,
  ])
  const mended = rows.join('\n').replace('none,', 'f4@example.com,').replace('nobody,', 'f5@example.com,')
  expect(await world.run(mended)).toMatchObject({ created: 2, suppressed: 1, failed: 0 })
})

test('a ZIP with a row that does not end names the file, and the files before are done', async () => {
  const found = await world.run(
    zipOf([csvFile('a.csv', 'q1', 'q2'), { name: 'b.csv', content: 'email\nq3@example.com\n"q4' }]),
  )
  expect(found).toMatchObject({ status: 'failed', created: 3 })
  expect(found.failureReason).toMatch(/^in b\.csv, behind row 1: Quote Not Closed/)
})

test('a ZIP with a test key is taken only without people who left', async () => {
  expect(await faultOf([subscribed('t1'), cleaned('t2')], { mode: 'test' })).toContain('use a live key')
  expect(await world.run(zipOf([subscribed('t1')]), { mode: 'test' })).toMatchObject({ created: 1 })
})

const ok = csvFile('a.csv', 'never')
const many = (count: number, name: (n: number) => string) => Array.from({ length: count }, (_, n) => csvFile(name(n)))

test.each<[string, readonly ZippedFile[] | Buffer, RegExp]>([
  ['that is empty', zipOf([]), /must have a CSV file with contacts in the ZIP; it has no file/],
  ['without a CSV file', [{ name: 'a.json', content: '{}' }], /it has "a\.json"/],
  ['without a file of contacts', [{ name: 'a.csv', content: 'subject\nx\n' }], /a\.csv: none of its columns/],
  ['that is a workbook', [{ name: '[Content_Types].xml', content: '' }, ok], /Excel workbook.*save the table as CSV/],
  [
    'whose people who left have no addresses',
    [ok, { name: 'unsubscribed_x.csv', content: 'Correo\nx\n' }],
    /which column of unsubscribed_x\.csv/,
  ],
  ['with a head that is wrong', [ok, { name: 'b.csv', content: 'email,x,x\n' }], /each column once.*b\.csv of the ZIP/],
  ['with two files of one name', [ok, ok], /two files of the name a\.csv/],
  ['that is cut off', zipOf([ok]).subarray(0, -30), /damaged or cut off/],
  [
    'that is cut off at its beginning',
    Buffer.concat([Buffer.from('PK\u0003\u0004'), zipOf([ok]).subarray(40)]),
    /damaged or cut off/,
  ],
  [
    'whose bytes are others',
    Buffer.from(
      zipOf([{ ...ok, method: 0 }])
        .toString('latin1')
        .replace('never', 'evern'),
      'latin1',
    ),
    /a\.csv of the ZIP: it is damaged: its checksum/,
  ],
  ['whose bytes cannot be unpacked', zipOf([ok]).fill(0xff, 40, 50), /damaged/],
  ['that is encrypted', [{ ...ok, flags: 0x801 }], /a\.csv of the ZIP: it is encrypted/],
  ['that is encrypted strongly', [{ ...ok, flags: 0x841 }], /encryption is not supported/],
  ['with another compression', [{ ...ok, method: 93 }], /compression method 93/],
  ['with files that are longer than it says', [{ ...ok, says: { size: 10 } }], /more than the 10 bytes/],
  ['with files that are shorter than it says', [{ ...ok, says: { size: 1_000 } }], /names 1000/],
  ['with files that reach behind its end', [{ ...ok, says: { compressedSize: 100_000 } }], /damaged/],
  ['with too many entries', many(importLimits.zipEntries + 1, (n) => `${n}/`), /more than 1000 entries/],
  ['with too many CSV files', many(importLimits.zipFiles + 1, (n) => `${n}.csv`), /at most 100 CSV files/],
  ['with too long a name', [csvFile(`${'x'.repeat(importLimits.zipNameBytes)}.csv`)], /name of more than 1024 bytes/],
  [
    'with too many columns in all',
    Array.from({ length: 3 }, (_, n) => ({
      name: `${n}.csv`,
      content: `email,${Array.from({ length: 400 }, (__, c) => `c${c}`).join(',')}\n`,
    })),
    /at most 1000 columns/,
  ],
])('a ZIP is refused: %s', async (_, files, message) => {
  expect(await faultOf(files)).toMatch(message)
  const { db, imports, scopeOf } = world
  const { data } = await imports.list(db, scopeOf(), { limit: 100 })
  expect(data.every(({ status }) => status !== 'uploading')).toBe(true)
  expect(await db.selectFrom('import_zip_chunks').select('position').execute()).toEqual([])
})

test('a ZIP that is a bomb is refused: in one file, and in many that share their bytes', async () => {
  const large = Buffer.concat([Buffer.from('email\n'), Buffer.alloc(20_000_000, '\n')])
  expect(await faultOf([{ name: 'a.csv', content: large }])).toContain('more than 100 times its size')
  const part = { name: 'a.csv', content: large.subarray(0, 1_000_000) }
  const others = Array.from({ length: 30 }, (_, n) => ({ ...part, name: `${n}.csv`, sharesWith: 0 }))
  expect(await faultOf([part, ...others])).toContain('more than 100 times its size')
  const huge = { ...part, isZip64: true, says: { size: importLimits.fileBytes + 1 } }
  expect(await faultOf([huge])).toMatch(/^payload_too_large: The files of the ZIP/)
  // So much is free, however well it is packed.
  expect(await world.run(zipOf([part]))).toMatchObject({ status: 'completed', rowsRead: 0 })
})

test('names in a ZIP that lead elsewhere are names, and nothing else', async () => {
  const names = ['../../etc/a.csv', '/root/b.csv', 'C:\\c.csv', 'd\u202e\u0000\n.csv']
  const found = await world.run(zipOf(names.map((name, n) => csvFile(name, `elsewhere${n}`))))
  expect(found.created).toBe(4)
  expect(found.files.map(({ name }) => name)).toEqual([
    '../../etc/a.csv',
    '/root/b.csv',
    'C:/c.csv',
    'd\\u202e\\u0000\\u000a.csv',
  ])
})
