import { describe, expect, test } from 'vitest'
import { headerMap } from '../../contract/email-content.ts'
import { faultsOfHeaders } from '../../server/emails/headers.ts'

const place = { path: 'body.headers', hasAudience: false }

function messagesOf(headers: Record<string, string>, hasAudience = false): string[] {
  return faultsOfHeaders(headers, { ...place, hasAudience }).map(({ message }) => message)
}

test.each([
  ['X-Order-Number', '4711'],
  ['X_Order_Number', '4711'],
  ['constructor', '4711'],
  ['In-Reply-To', '<1@example.com>'],
  ['References', '<1@example.com> <2@example.com>'],
  ['List-Unsubscribe', '<https://example.com/unsubscribe>'],
  ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
  ['List-Id', 'News <news.example.com>'],
  ['Auto-Submitted', 'auto-generated'],
  ['X-Tab', 'a\tb'],
  ['X-Name', 'Jörg 😀'],
  ['X-Empty', ''],
])('%s may be set', (name, value) => {
  expect(messagesOf({ [name]: value })).toEqual([])
})

test.each([
  'From',
  'to',
  'CC',
  'Bcc',
  'Reply-To',
  'Subject',
  'Date',
  'Message-ID',
  'Sender',
  'MIME-Version',
  'Content-Type',
  'content-transfer-encoding',
  'Content-Anything',
  'Return-Path',
  'Received',
  'DKIM-Signature',
  'ARC-Seal',
  'Authentication-Results',
  'Resent-From',
  'Delivered-To',
])('%s may not be set', (name) => {
  expect(messagesOf({ [name]: 'x' })).toEqual([expect.stringContaining('leave it out')])
})

test.each(['', ' ', 'X Y', 'X:', 'X-Ä', 'X\r\nBcc', 'X\0', '__proto__ '])('%j is not the name of a header', (name) => {
  expect(messagesOf({ [name]: 'x' })).toEqual([
    'is not the name of a header: use letters, digits, hyphens and underscores',
  ])
})

test('a header named __proto__ is refused, and not lost', () => {
  const sent = JSON.parse('{"__proto__": "x", "constructor": "y"}')
  const { success, error } = headerMap.safeParse(sent)
  expect(success).toBe(false)
  expect(error?.issues).toEqual([expect.objectContaining({ path: ['__proto__'], message: 'cannot be a name here' })])
  expect(headerMap.parse(JSON.parse('{"constructor": "y"}'))).toEqual({ constructor: 'y' })
})

test.each(['a\r\nBcc: eve@example.com', 'a\nb', 'a\rb', 'a\0b', 'a\u007fb', 'a\u0085b', 'a\u2028b'])(
  'the value %j would be more than one line',
  (value) => {
    expect(messagesOf({ 'X-A': value })).toEqual([expect.stringContaining('must not contain line breaks')])
  },
)

test('the same name twice is refused where it stands', () => {
  expect(faultsOfHeaders({ 'X-A': '1', 'x-a': '2' }, place)).toEqual([
    { path: 'body.headers.x-a', message: 'is there already, in other letter case' },
  ])
})

test.each(['List-Unsubscribe', 'list-unsubscribe-post'])('%s is the service’s for an email to an audience', (name) => {
  expect(messagesOf({ [name]: 'x' }, true)).toEqual([expect.stringContaining('to an audience')])
})

describe('sizes', () => {
  test('a header of 998 octets is taken, and none more', () => {
    const value = 'x'.repeat(998 - 'X-A: '.length)
    expect(messagesOf({ 'X-A': value })).toEqual([])
    expect(messagesOf({ 'X-A': `${value}x` })).toEqual(['must be at most 998 octets long with its name'])
    expect(messagesOf({ 'X-A': `${value.slice(1)}é` })).toEqual(['must be at most 998 octets long with its name'])
  })

  test('50 headers are taken, and none more', () => {
    const some = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, 'x']))
    expect(messagesOf(some(50))).toEqual([])
    expect(messagesOf(some(51))).toEqual(['must be at most 50 headers'])
  })

  test('32 KiB are taken, and no octet more', () => {
    const each = (32 * 1024) / 40
    const all = Array.from({ length: 40 }, (_, i) => [`X-${i + 10}`, 'x'.repeat(Math.floor(each) - 6)] as const)
    const octets = all.reduce((sum, [name, value]) => sum + name.length + 2 + value.length, 0)
    const rest = 32 * 1024 - octets
    expect(messagesOf(Object.fromEntries([...all, ['X-Z', 'x'.repeat(rest - 5)]]))).toEqual([])
    expect(messagesOf(Object.fromEntries([...all, ['X-Z', 'x'.repeat(rest - 4)]]))).toEqual([
      'must be at most 32768 octets together',
    ])
  })
})
