import { type Header, headerOf } from './headers.ts'

/*
 * Detects the author of a message that came back: a mail server, an auto-responder or a person. The address does not
 * tell: bounces and out-of-office replies both go to the return path, and every recipient of the copy can write to it.
 * An empty sender does not tell either, because out-of-office replies may have one too (RFC 3834 §3.3).
 */

/** Sender names that only mail servers use. */
const daemons = /mailer-?daemon|postmaster|mail ?delivery|microsoftexchange|mdaemon/i

const answerFields: readonly string[] = ['x-autoreply', 'x-autorespond', 'x-autoresponder', 'x-auto-reply-from']

/** The beginnings of subjects of automatic replies. */
const answerSubjects =
  /^(automatic reply|auto(matic)?[ -]?re(ply|sponse)|out of (the )?office|abwesen|automatische antwort|réponse automatique|respuesta automática)/i

/** Returns whether the From field names a mail server, or is missing. */
export function isFromDaemon(headers: readonly Header[]): boolean {
  const from = headerOf(headers, 'from') ?? ''
  return from === '' || daemons.test(from)
}

/** Returns whether the message seems to be from a mail server: also if its envelope sender is empty. */
export function isFromMailer(headers: readonly Header[]): boolean {
  return isFromDaemon(headers) || headerOf(headers, 'return-path') === '<>'
}

/**
 * Returns whether the message declares itself an automatic reply. Many bounces do so too. Source: RFC 3834 §5, and
 * older header fields.
 */
export function isAutomaticAnswer(headers: readonly Header[]): boolean {
  const submitted = headerOf(headers, 'auto-submitted') ?? 'no'
  if (/^auto-(replied|notified)/i.test(submitted)) return true
  if (answerFields.some((name) => headerOf(headers, name) !== null)) return true
  if (/^auto_reply$/i.test(headerOf(headers, 'precedence') ?? '')) return true
  // People may use such subjects too. Exchange does for automatic replies, but adds a header that declares them.
  const isAutomatic = !/^no\b/i.test(submitted) || headerOf(headers, 'x-auto-response-suppress') !== null
  return isAutomatic && answerSubjects.test(headerOf(headers, 'subject') ?? '')
}
