import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { classifyFailure } from '../../server/bounces/classify-report.ts'
import { type Notification, readNotification } from '../../server/bounces/read.ts'

/*
 * Messages of the shapes that the large providers and common servers send back, and of those that are made
 * of them on their way: written for these tests, with addresses that nobody has. Each is read as it is sent,
 * with CRLF, and as it is kept here, with LF.
 */

const directory = join(import.meta.dirname, 'corpus')
const names = readdirSync(directory).map((name) => name.replace(/\.eml$/, ''))
const fileOf = (name: string) => readFileSync(join(directory, `${name}.eml`), 'utf8')

/** Summarises a notification: its addresses with their outcomes or its complaint, otherwise its kind. */
function summaryOf(notification: Notification): string[] {
  switch (notification.kind) {
    case 'dsn':
      return notification.recipients.map((recipient) => {
        const { bounceType, reply } = classifyFailure(recipient)
        const failure = recipient.action === 'failed' ? [bounceType, reply?.slice(0, 40)] : []
        return [recipient.addresses[0], recipient.action, ...failure].join(' ')
      })
    case 'arf':
      return [`complaint ${notification.feedbackType} ${notification.recipients.join(' ')}`.trim()]
    default:
      return [notification.kind]
  }
}

const failed = 'ada@example.org failed hard 550 5.1.1 User unknown'

const expected: Record<string, string[]> = {
  'amazon-ses': ['ada@example.org failed soft 550 5.7.26 This mail has been blocked be'],
  'appliance-text': ['unreadable'],
  'arf-fastmail': ['complaint abuse ada@fastmail.example bob@fastmail.example'],
  'arf-mangled': ['complaint abuse ada@isp.example'],
  'arf-microsoft-jmrp': ['complaint abuse ada@hotmail.example'],
  'arf-not-spam': ['complaint not-spam ada@mailbox.example'],
  'arf-redacted': ['complaint fraud 2b64c2f1c7@redacted.example'],
  'arf-yahoo': ['complaint abuse ada@yahoo.example'],
  'blank-lines-everywhere': [failed, 'bob@example.org delayed'],
  'cut-off': ['ada@example.org failed hard 550 5.1.1 User unk'],
  domino: ['ada@example.org failed hard 550 5.1.1 User ada (ada@example.org) not'],
  'dovecot-delivered': ['ada@example.org delivered'],
  'exchange-abwesend': ['auto-reply'],
  'exchange-base64': ['ada@example.org failed soft 554 5.2.2 mailbox full; STOREDRV.Deliver'],
  'exchange-out-of-office': ['auto-reply'],
  'exchange-text': ['ada@example.org failed hard 550 5.1.1 User unknown'],
  'exim-report': ['ada@example.org failed soft 550 Administrative prohibition: message '],
  'exim-text': ['ada@example.org failed hard 550 5.1.1 <ada@example.org>: no such use'],
  'exim-warning': ['ada@example.org delayed'],
  fastmail: ['news+3Dlist@example.org failed soft 554 5.7.1 Service unavailable; Client ho'],
  flattened: [failed],
  'folded-and-odd': ['Ada@Example.ORG failed hard 550 5.1.1 User unknown'],
  forwarded: [failed],
  'forwarded-base64': [failed],
  'german-text': ['ada@example.org failed soft 552 5.2.2 Das Postfach ist voll'],
  'gmail-delay': ['ada@example.org delayed'],
  'gmail-no-such-user': ['ada@example.org failed hard 550 5.1.1 The email account that you tri'],
  'gmail-over-quota': ["ada@example.org failed soft 552 5.2.2 The recipient's inbox is out o"],
  'gmail-success-text': ['unreadable'],
  gmx: ['ada@example.org failed hard 550 5.1.1 unbekannter Empfänger'],
  'html-only': ['ada@example.org failed hard 550 5.1.1 <ada@example.org>: Recipient a'],
  icloud: ['ada@icloud.example failed hard 550 5.1.6 <ada@icloud.example>: user no '],
  'microsoft-365-access-denied': ['ada@example.org failed hard 550 5.4.1 Recipient address rejected: Ac'],
  'microsoft-365-recipient-not-found': ['ada@example.org failed hard 550 5.1.10 RESOLVER.ADR.RecipientNotFoun'],
  newsletter: ['unreadable'],
  'no-blank-lines': [failed, 'bob@example.org failed soft 552 5.2.2 Mailbox full'],
  person: ['unreadable'],
  'person-abwesen': ['unreadable'],
  'person-automatic': ['unreadable'],
  'postfix-delayed': ['ada@example.org delayed'],
  'postfix-delayed-text': ['ada@example.org delayed'],
  'postfix-relayed': ['ada@example.org relayed'],
  'postfix-text': ['ada@example.org failed hard 550 5.1.1 <ada@example.org>: Recipient a'],
  'postfix-two-recipients': [
    'ada@example.org failed soft 552 5.2.2 Mailbox is over quota',
    'bob@example.net failed hard 550 5.4.4 Host or domain name not found.',
  ],
  'postfix-user-unknown': ['ada@example.org failed hard 550 5.1.1 <ada@example.org>: Recipient a'],
  qmail: ['ada@example.org failed hard 550 No such user here'],
  'qmail-vpopmail': [
    'ada@example.org failed hard 550 5.1.1 Sorry, no mailbox here by that',
    "bob@example.org failed soft 450 4.4.1 Sorry, I wasn't able to establ",
  ],
  'read-receipt': ['auto-reply'],
  'report-without-recipient': ['unreadable'],
  'return-path-only': ['complaint abuse'],
  'sendmail-expanded': ['team@example.org expanded'],
  'sendmail-gave-up': ['ada@example.org failed soft 452 4.2.2 Mailbox full'],
  'sendmail-user-unknown': ['ada@example.org failed hard 550 5.1.1 <ada@example.org>... User unkn'],
  smtputf8: ['j\\x{FC}rgen@b\\x{FC}cher.example failed hard 550 5.1.1 niemand heißt so'],
  vacation: ['auto-reply'],
  'vacation-quotes-a-bounce': ['unreadable'],
  'vacation-quotes-a-report': ['unreadable'],
  'wrong-types': [failed],
  'yahoo-disabled': ["ada@yahoo.example failed hard 554 delivery error: dd This user doesn't"],
  'yahoo-old-text': ["ada@yahoo.example failed hard 550 This user doesn't have a yahoo.examp"],
  zoho: ['ada@example.org failed soft 550 5.7.1 Email rejected per SPAM policy'],
}

test('every message is in the table', () => {
  expect(names.length).toBeGreaterThanOrEqual(25)
  expect(Object.keys(expected).sort()).toEqual([...names].sort())
})

describe.each(Object.entries(expected))('%s', (name, says) => {
  test('a message says the same with CRLF and with LF', () => {
    const text = fileOf(name)
    expect(summaryOf(readNotification(Buffer.from(text.replaceAll('\n', '\r\n'))))).toEqual(says)
    expect(summaryOf(readNotification(Buffer.from(text)))).toEqual(says)
  })
})

const carriers = [
  'postfix-user-unknown',
  'gmail-no-such-user',
  'forwarded',
  'forwarded-base64',
  'flattened',
  'arf-yahoo',
  'arf-redacted',
]
test.each(carriers)('%s carries the token of its copy', (name) => {
  expect(readNotification(Buffer.from(fileOf(name)))).toMatchObject({ original: { copyToken: 'token0123456789' } })
})

const withReturnPath = ['arf-yahoo', 'arf-microsoft-jmrp', 'arf-redacted', 'qmail', 'return-path-only']
test.each(withReturnPath)('%s tells of its return path', (name) => {
  expect(readNotification(Buffer.from(fileOf(name)))).toMatchObject({
    original: { returnPath: 'b.token@send.example.com' },
  })
})

const withUnsubscribe = ['arf-yahoo', 'arf-microsoft-jmrp', 'arf-fastmail', 'arf-redacted', 'arf-mangled']
test.each(withUnsubscribe)('%s carries the token of its unsubscribe link', (name) => {
  expect(readNotification(Buffer.from(fileOf(name)))).toMatchObject({
    original: { unsubscribeToken: 'unsubscribe-token_1' },
  })
})

test('addresses are read in all the ways they are written', () => {
  const addressesIn = (name: string) => {
    const notification = readNotification(Buffer.from(fileOf(name)))
    return notification.kind === 'dsn' ? notification.recipients.map(({ addresses }) => addresses) : []
  }
  expect(addressesIn('fastmail')).toEqual([['news+3Dlist@example.org', 'news=list@example.org', 'owner@lists.example']])
  expect(addressesIn('smtputf8')).toEqual([['j\\x{FC}rgen@b\\x{FC}cher.example', 'jürgen@bücher.example']])
})

test('the server that refused is told', () => {
  expect(readNotification(Buffer.from(fileOf('folded-and-odd')))).toMatchObject({
    recipients: [{ host: 'mx1.example.org', status: '5.1.1', diagnostic: '550 5.1.1 User unknown' }],
  })
})
