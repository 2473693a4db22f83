import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type JsonBounds, readJson, tooLongLength } from '../../server/http/read-json.ts'
import { DomainError } from '../../server/shared/errors.ts'

const bounds: JsonBounds = {
  longFields: { html: 1_000_000 },
  maxStringBytes: 65_536,
  maxOtherBytes: 1_000_000,
  maxValues: 100_000,
  maxDepth: 1_000,
}
/** Small, so that every text has many. Bytes. */
const slice = 7

/** How often the event loop turned while `work` went on. */
async function turnsOf<T>(work: Promise<T>): Promise<{ turns: number; result: T }> {
  let turns = 0
  let isDone = false
  const turn = () => {
    turns++
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  const result = await work.finally(() => {
    isDone = true
  })
  return { turns, result }
}

async function refusalOf(json: string | Buffer, changed: Partial<JsonBounds> = {}): Promise<string> {
  const refusal = await readJson(Buffer.from(json), { ...bounds, ...changed }, slice).catch((error) => error)
  return refusal instanceof DomainError ? `${refusal.code}: ${refusal.message}` : `not refused: ${String(refusal)}`
}

const anyText = fc.string({
  unit: fc.constantFrom('a', '"', '\\', '\n', 'é', '€', '😀', '\ufeff', '\ud83d', '\u0001'),
  maxLength: 40,
})
const longText = fc.array(anyText, { minLength: 40, maxLength: 60 }).map((parts) => parts.join('').repeat(3))
const anyJson = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    anyText,
    longText,
    fc.double({ noNaN: true }),
    tie('list'),
    tie('object'),
    fc.constant(null),
  ),
  list: fc.array(tie('value'), { maxLength: 4 }),
  object: fc.dictionary(fc.oneof(anyText, fc.constantFrom('html', '__proto__', 'constructor')), tie('value'), {
    maxKeys: 4,
  }),
})).value

/** Bytes: many in a long text, or many long texts in one. */
const anySlice = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1_000, max: 8_000 }))

test('a body is what JSON.parse makes of it, long texts or not, wherever the slices end', async () => {
  await fc.assert(
    fc.asyncProperty(anyJson, fc.constantFrom(0, 2), anySlice, async (value, blanks, size) => {
      const json = Buffer.from(JSON.stringify(value, null, blanks).toWellFormed())
      expect(await readJson(json, bounds, size)).toEqual(JSON.parse(json.toString()))
    }),
    { numRuns: 300 },
  )
})

test('long texts of which only the last is longer than a slice are read', async () => {
  const given = { emails: [{ html: 'a"'.repeat(1_000) }, { html: 'é\n'.repeat(1_500) }, { html: '😀"'.repeat(9_000) }] }
  expect(await readJson(Buffer.from(JSON.stringify(given)), bounds, 10_000)).toEqual(given)
})

test.each([
  ['escapes', '\\u0041\\ud83d\\ude00\\n\\\\\\"'.repeat(200)],
  ['halves of pairs', '\\ud83d'.repeat(400)],
  ['backslashes', '\\\\'.repeat(2_000)],
  ['characters of two, three and four bytes', 'é€😀'.repeat(300)],
  ['byte order marks', '\ufeff'.repeat(600)],
  ['brackets', '[{"a\\":'.replaceAll('"', '\\"').replaceAll('\\\\"', '\\"').repeat(400)],
])('a long text of %s is read in slices, as it is', async (_, inside) => {
  const json = `{"a":1,"html":"${inside}","b":[{"html":"${inside}"}]}`
  for (const size of [1, 2, 3, 5, 6, 7, 64, 1_000_000]) {
    expect(await readJson(Buffer.from(json), bounds, size)).toEqual(JSON.parse(json))
  }
})

test('a text is long under an escaped name, and not in a list or an object below it', async () => {
  const text = 'x'.repeat(70_000)
  const json = JSON.stringify({ html: text, a: [text], b: { html: [text], c: text } }).replace('"html"', '"\\u0068tml"')
  const short = 'x'.repeat(tooLongLength)
  expect(await readJson(Buffer.from(json), bounds)).toEqual({ html: text, a: [short], b: { html: [short], c: short } })
})

test('a long text is decoded no further than it is too long', async () => {
  const json = Buffer.from(JSON.stringify({ html: 'x'.repeat(50_000) }))
  const read = await readJson(json, { ...bounds, longFields: { html: 20_000 } }, 1_000)
  const { length } = Object(read).html
  expect(length).toBeGreaterThan(20_000)
  expect(length).toBeLessThanOrEqual(21_000)
})

test('a long text of printable ASCII is read as it is, and nothing else passes for it', async () => {
  const plain = ` ~${'x'.repeat(5_000)}~ `
  const read = (text: string) => readJson(Buffer.from(`{"html":"${text}"}`), bounds, 1_000)
  expect(await read(plain)).toEqual({ html: plain })
  for (const [written, meant] of [
    ['é', 'é'],
    ['\u007f', '\u007f'],
    ['\\n', '\n'],
    ['\\/', '/'],
  ] as const) {
    expect(await read(plain + written + plain)).toEqual({ html: plain + meant + plain })
  }
  for (const control of '\u0000\n\u001f') await expect(read(plain + control + plain)).rejects.toThrow('is not JSON')
})

test('the event loop turns for every slice', async () => {
  const json = Buffer.from(JSON.stringify({ html: 'é'.repeat(25_000), a: 'y'.repeat(50_000) }))
  const { turns } = await turnsOf(readJson(json, bounds, 1_000))
  // Each byte is walked, and those of the long text are decoded.
  expect(turns).toBeGreaterThanOrEqual(150)
})

test.each([
  [
    'depth',
    '[[[1]]]    ',
    { maxDepth: 2 },
    'validation_error: The request is not valid: body: must not be nested more than 2 deep.',
  ],
  [
    'values',
    '{"a":1,"b":2}',
    { maxValues: 3 },
    'payload_too_large: The body has more than 3 names and values: send less at once.',
  ],
  [
    'bytes beside long texts',
    `{"html":"${'x'.repeat(2_000)}","a":"${'y'.repeat(100)}"}`,
    { maxOtherBytes: 100 },
    'payload_too_large: The body has more than 100 bytes beside its long texts: send less at once.',
  ],
  [
    'blanks',
    ' '.repeat(200),
    { maxOtherBytes: 100 },
    'payload_too_large: The body has more than 100 bytes beside its long texts: send less at once.',
  ],
  [
    'a name',
    `{"${'x'.repeat(9_000)}":1}`,
    {},
    'payload_too_large: The body has more than 8192 bytes in the name of a field: send less at once.',
  ],
])('a body is bounded in %s', async (_, json, changed, refusal) => {
  expect(await refusalOf(json, changed)).toBe(refusal)
})

test('a short body is bounded in depth too, in lists and objects, and not by what stands in its strings', async () => {
  const read = (json: string) => readJson(Buffer.from(json), { ...bounds, maxDepth: 3 })
  const refused = {
    code: 'validation_error',
    details: [{ path: 'body', message: 'must not be nested more than 3 deep' }],
  }
  for (const json of [
    '{"a":[[{}]]}',
    '[[[[1]]]]',
    '{"a":{"b":{"c":{}}}}',
    `${'['.repeat(8_000)}${']'.repeat(8_000)}`,
  ]) {
    await expect(read(json)).rejects.toMatchObject(refused)
  }
  for (const json of ['{"a":[[1,null,"[[[["]]}', '{"a":{"b":{"c":1}}}', '1', 'null']) {
    expect(await read(json)).toEqual(JSON.parse(json))
  }
})

test('within the bounds nothing is refused', async () => {
  const json = `{"a":[[1]],"html":"${'x'.repeat(2_000)}"}`
  const tight = { maxDepth: 3, maxValues: 6, maxOtherBytes: 100 }
  expect(await readJson(Buffer.from(json), { ...bounds, ...tight }, slice)).toEqual(JSON.parse(json))
})

test.each([
  ['a string that does not end', '{"a":"xxxxxxxx'],
  ['an escape that is none in a long text', `{"html":"${'x'.repeat(2_000)}\\q"}`],
  ['hexadecimal digits that are none', `{"html":"${'x'.repeat(2_000)}\\uq000"}`],
  ['a quotation mark within an escape', `{"html":"${'x'.repeat(2_000)}\\u"}`],
  ['a line break in a long text', `{"html":"${'x'.repeat(2_000)}\n"}`],
  [
    'no UTF-8 in a long text',
    Buffer.concat([Buffer.from(`{"html":"${'x'.repeat(2_000)}`), Buffer.from([0xff]), Buffer.from('"}')]),
  ],
  [
    'bytes that only go on with a character',
    Buffer.concat([Buffer.from('{"html":"'), Buffer.alloc(3_000, 0x80), Buffer.from('"}')]),
  ],
  ['brackets that do not match', '{"a":[}]xxxx'],
  ['more closed than opened', ']]]]]]]]]]'],
  ['what stands for a long text elsewhere', `{"html":"${'x'.repeat(2_000)}"} x`],
  ['nothing', '           '],
])('%s is malformed', async (_, json) => {
  expect(await refusalOf(json)).toMatch(/^malformed_json: The body is not JSON: /)
})

test.each([
  ['nope', 'it cannot be parsed at character 2'],
  ['{"a":[1,]}', 'it cannot be parsed at character 9'],
  ['{"a":1} x', 'it cannot be parsed at character 9'],
  ['{"a":1', 'it cannot be parsed at character 7'],
  ['{"a":', 'it ends too early'],
  ['{"a":"\u0001"}', 'it cannot be parsed at character 7'],
  ['"at position 3 (line 1 column 4)" x', 'it cannot be parsed at character 35'],
])('%s tells where it is broken', async (json, reason) => {
  expect(await refusalOf(json)).toBe(`malformed_json: The body is not JSON: ${reason}.`)
})

test('where a large one is broken is not looked for', async () => {
  const refusal = await refusalOf(`[${'1,'.repeat(9_000)}]`)
  expect(refusal).toBe('malformed_json: The body is not JSON: it cannot be parsed.')
})

test('nothing of a broken body is quoted', async () => {
  // Each letter is in no message of this service.
  const secret = 'QZQZ'
  const whole = `{"privateKey":"${secret}","list":[true,-1.5e3,{}],"html":"${'Z'.repeat(2_000)}"}`
  for (let at = 0; at < 60; at++) {
    for (const broken of ['', secret, '"', '\\', '}', ',', '\n', '0', '\uffff']) {
      const json = Buffer.from(whole.slice(0, at) + broken + whole.slice(at + 1))
      for (const sliceBytes of [512, undefined]) {
        const told = await readJson(json, bounds, sliceBytes).then(() => '', String)
        expect(told).not.toMatch(/[QZ]/)
      }
    }
  }
})
