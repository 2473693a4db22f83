import { type Header, headerOf } from './headers.ts'

/*
 * Who has written a message that came back: a mail server, a program that answers for somebody, or a person.
 * The address it came back to does not tell: bounces and holiday notes both go to the return path, and so could
 * anybody who has the copy write to it. Nor does an empty sender, which holiday notes may have too (RFC 3834 §3.3).
 */

/** Names that nobody but mail servers has. */
const daemons = /mailer-?daemon|postmaster|mail ?delivery|microsoftexchange|mdaemon/i

const answerFields: readonly string[] = ['x-autoreply', 'x-autorespond', 'x-autoresponder', 'x-auto-reply-from']

/** How the subject of an answer begins that says no more of itself than that a program has written it. */
const answerSubjects =
  /^(automatic reply|auto(matic)?[ -]?re(ply|sponse)|out of (the )?office|abwesen|automatische antwort|réponse automatique|respuesta automática)/i

/** Whether it says to be from a mail server: that has no other author. */
export function isFromDaemon(headers: readonly Header[]): boolean {
  const from = headerOf(headers, 'from') ?? ''
  return from === '' || daemons.test(from)
}

/** Whether it is from a mail server as far as one can see: a person who writes back has a sender. */
export function isFromMailer(headers: readonly Header[]): boolean {
  return isFromDaemon(headers) || headerOf(headers, 'return-path') === '<>'
}

/**
 * Whether it says that a program has written it as an answer. Many servers say so of their bounces too.
 * Source: RFC 3834 §5, and what was there before it.
 */
export function isAutomaticAnswer(headers: readonly Header[]): boolean {
  const submitted = headerOf(headers, 'auto-submitted') ?? 'no'
  if (/^auto-(replied|notified)/i.test(submitted)) return true
  if (answerFields.some((name) => headerOf(headers, name) !== null)) return true
  if (/^auto_reply$/i.test(headerOf(headers, 'precedence') ?? '')) return true
  // A person may begin a subject so; Exchange does, and says that it was no person.
  const isAutomatic = !/^no\b/i.test(submitted) || headerOf(headers, 'x-auto-response-suppress') !== null
  return isAutomatic && answerSubjects.test(headerOf(headers, 'subject') ?? '')
}
