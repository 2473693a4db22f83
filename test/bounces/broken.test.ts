import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { classifyFailure } from '../../server/bounces/classify-report.ts'
import { type Notification, readNotification } from '../../server/bounces/read.ts'

/*
 * A notification that was damaged in transit has the same outcome or a milder one, or is kept. It is never taken for
 * an automatic reply of a person, though most servers mark their notifications as automatic replies (RFC 3834 §5).
 */

const directory = join(import.meta.dirname, 'corpus')
const notifications = readdirSync(directory)
  .map((name) => ({ name: name.replace(/\.eml$/, ''), text: readFileSync(join(directory, name), 'utf8') }))
  .filter(({ text }) => read(text).kind === 'dsn')
  .map(({ name, text }) => ({ name, text: withHeader(text) }))

function read(text: string): Notification {
  return readNotification(Buffer.from(text.replaceAll('\n', '\r\n')))
}

/** Has it say that it is an automatic answer, if it does not. */
function withHeader(text: string): string {
  return /^auto-submitted: auto-replied/im.test(text) ? text : `Auto-Submitted: auto-replied\n${text}`
}

/** The outcomes for an address, from the best to the worst. */
const outcomes = ['delivered', 'delayed', 'soft', 'hard']

/** The worst that is said of any recipient. */
function worstOf(notification: Notification): number {
  if (notification.kind !== 'dsn') return -1
  return Math.max(
    ...notification.recipients.map((recipient) => {
      if (recipient.action === 'failed') return outcomes.indexOf(classifyFailure(recipient).bounceType)
      return recipient.action === 'delayed' ? 1 : 0
    }),
  )
}

function expectNoMoreThan(whole: string, broken: string): void {
  const notification = read(broken)
  expect(['dsn', 'unreadable']).toContain(notification.kind)
  expect(worstOf(notification)).toBeLessThanOrEqual(worstOf(read(whole)))
}

const beginningsOf = (text: string) => text.split('\n').map((_, index, lines) => lines.slice(0, index).join('\n'))

describe.each(notifications)('$name', ({ text }) => {
  test('a notification that is cut off after any line tells no more, or is kept', () => {
    for (const beginning of beginningsOf(text)) expectNoMoreThan(text, beginning)
  })

  test('a notification without the fields that name its recipients tells no more, or is kept', () => {
    const fields = /^(x-failed-recipients|(final|original|x-actual)-recipient)[ \t]*:.*\n([ \t].*\n)*/gim
    expectNoMoreThan(text, text.replace(fields, ''))
    expectNoMoreThan(text, text.replace(/^x-failed-recipients[ \t]*:.*\n/gim, ''))
  })

  test('a notification without its structure tells no more, or is kept', () => {
    expectNoMoreThan(text, text.replace(/^content-type[ \t]*:.*\n([ \t].*\n)*/im, ''))
  })
})

test('a report that is cut off behind its letter tells what the letter tells', () => {
  const told = notifications.flatMap(({ name, text }) => {
    const cut = text.slice(0, text.search(/^content-type: message\/(global-)?delivery-status/im))
    const kind = read(cut.replace(/^x-failed-recipients:.*\n/im, '')).kind
    return cut.length > 1 && kind === 'dsn' ? [name] : []
  })
  expect(told).toEqual(
    expect.arrayContaining([
      'gmail-delay',
      'gmail-no-such-user',
      'gmail-over-quota',
      'gmx',
      'microsoft-365-recipient-not-found',
      'postfix-user-unknown',
      'yahoo-disabled',
    ]),
  )
})
