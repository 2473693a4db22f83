import { describe, expect, test } from 'vitest'
import { envelopeOf, type Letter } from '../../server/smtp/envelope.ts'

const ascii = Buffer.from('Subject: Hello\r\n\r\nHello\r\n')
const eightBit = Buffer.from('Subject: Hello\r\n\r\nGrüße\r\n')
const utf8Header = Buffer.from('To: grüße@x.test\r\n\r\nHello\r\n')

function letter(changes: Partial<Letter> & { to?: string[] } = {}): Letter {
  const { to = ['b@x.test'], ...rest } = changes
  const recipients = to.map((address, position) => ({ position, address }))
  return { mailFrom: 'a@y.test', message: ascii, recipients, ...rest }
}

function ask(sent: Letter, extensions: string[] = [], successNotifications = false) {
  const offered = new Map(extensions.map((line) => [line.split(' ')[0] ?? '', line.split(' ')[1] ?? '']))
  return envelopeOf(sent, offered, { successNotifications })
}

test('a server is asked for no more than it offers', () => {
  expect(ask(letter())).toEqual({ mail: 'MAIL FROM:<a@y.test>', recipients: ['RCPT TO:<b@x.test>'] })
  expect(ask(letter({ mailFrom: '' })).mail).toBe('MAIL FROM:<>')
})

test('a server is asked for what the message needs', () => {
  const offered = ['SIZE', '8BITMIME', 'SMTPUTF8']
  expect(ask(letter(), offered).mail).toBe(`MAIL FROM:<a@y.test> SIZE=${ascii.length}`)
  expect(ask(letter({ message: eightBit }), offered).mail).toBe(
    `MAIL FROM:<a@y.test> SIZE=${eightBit.length} BODY=8BITMIME`,
  )
  expect(ask(letter({ message: utf8Header }), offered).mail).toBe(
    `MAIL FROM:<a@y.test> SIZE=${utf8Header.length} BODY=8BITMIME SMTPUTF8`,
  )
  expect(ask(letter({ to: ['grüße@x.test'] }), offered)).toEqual({
    mail: `MAIL FROM:<a@y.test> SIZE=${ascii.length} SMTPUTF8`,
    recipients: ['RCPT TO:<grüße@x.test>'],
  })
  expect(ask(letter({ mailFrom: 'grüße@y.test' }), offered).mail).toContain('<grüße@y.test>')
})

test('a server is asked to say of whom it speaks in notifications, and of success where somebody listens', () => {
  const sent = letter({ to: ['b+c=d@x.test'] })
  expect(ask(sent, ['DSN'])).toEqual({
    mail: 'MAIL FROM:<a@y.test> RET=HDRS',
    recipients: ['RCPT TO:<b+c=d@x.test> ORCPT=rfc822;b+2Bc+3Dd@x.test'],
  })
  expect(ask(sent, ['DSN'], true).recipients).toEqual([
    'RCPT TO:<b+c=d@x.test> NOTIFY=SUCCESS,FAILURE,DELAY ORCPT=rfc822;b+2Bc+3Dd@x.test',
  ])
})

test('a server is asked with domains in ASCII, which every server knows', () => {
  expect(ask(letter({ to: ['b@bücher.test'], mailFrom: 'a@bücher.test' }))).toEqual({
    mail: 'MAIL FROM:<a@xn--bcher-kva.test>',
    recipients: ['RCPT TO:<b@xn--bcher-kva.test>'],
  })
})

describe('a server is not asked', () => {
  const reasonsOf = (sent: Letter, extensions: string[]) =>
    ask(sent, extensions).recipients.map((one) => (typeof one === 'string' ? one : `${one.code} ${one.enhanced}`))

  test('a server is not asked for more bytes than it takes', () => {
    expect(reasonsOf(letter(), ['SIZE 10'])).toEqual(['552 5.3.4'])
    expect(reasonsOf(letter(), [`SIZE ${ascii.length}`])).toEqual(['RCPT TO:<b@x.test>'])
    expect(reasonsOf(letter(), ['SIZE 0'])).toEqual(['RCPT TO:<b@x.test>'])
  })

  test('a server is not asked for an address beyond ASCII that it cannot take, but for the others', () => {
    expect(reasonsOf(letter({ to: ['grüße@x.test', 'b@x.test'] }), [])).toEqual(['553 5.6.7', 'RCPT TO:<b@x.test>'])
  })

  test('a server is not asked for anybody, where the header or the sender is beyond ASCII and it cannot take that', () => {
    expect(reasonsOf(letter({ message: utf8Header, to: ['b@x.test', 'c@x.test'] }), ['8BITMIME'])).toEqual([
      '553 5.6.7',
      '553 5.6.7',
    ])
    expect(reasonsOf(letter({ mailFrom: 'grüße@y.test' }), [])).toEqual(['553 5.6.7'])
  })

  test('a server is not asked for an 8-bit message that it cannot take', () => {
    expect(reasonsOf(letter({ message: eightBit }), [])).toEqual(['554 5.6.3'])
  })

  test.each([
    'b@x.test> NOTIFY=NEVER',
    'b@x.test>\r\nDATA',
    'b@x.test\n',
    'b c@x.test',
    '<b@x.test',
    'b@x.test\0',
    'nobody',
    '@x.test',
    'b@',
    '"b"c"@x.test',
    '"b\r\n"@x.test',
  ])('a server is not asked for what would be another command: %j', (address) => {
    expect(reasonsOf(letter({ to: [address] }), [])).toEqual(['553 5.1.3'])
  })

  test('a quoted local part is an address', () => {
    expect(reasonsOf(letter({ to: ['"b > c"@x.test', '"b\\"c"@x.test'] }), [])).toEqual([
      'RCPT TO:<"b > c"@x.test>',
      'RCPT TO:<"b\\"c"@x.test>',
    ])
  })
})
