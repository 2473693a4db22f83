import type { RecipientReport } from './delivery-status.ts'

/*
 * Notifications that are a letter to a person and nothing else, as qmail and old servers write them. What
 * they say is found by its looks; which of the addresses was meant is for whoever knows the recipients.
 */

/** Characters of a text that are looked at. */
const maxLength = 65_536
/** Addresses in a text that are looked at. */
const maxAddresses = 100
const maxDiagnosticLength = 1_000

/** Where what follows is the message that came back. */
const original =
  /^(-{2,} ?(below this line is|this is a copy of|original message|returned message|the following is|undelivered message)|received: (from|by) |return-path: |original message headers|reporting-mta: )/im

/** What a notification says of itself, in its subject or its text. */
const looksLikeBounce =
  /undeliver(ed|able)|could not be delivered|cannot be delivered|can'?t be delivered|couldn'?t be delivered|delivery (to the following|has failed|failed|failure|status notification|notification)|failure notice|returned mail|returned to sender|unable to deliver|not able to deliver|wasn'?t able to deliver|did not reach|not (yet )?been delivered|mail delivery (failed|system)|nicht zugestellt|unzustellbar|non remis|no se (ha )?pud?o entregar/i

/** What nobody says who has given up. */
const stillTries =
  /(will|is going to) (be retried|retry|keep trying|continue to (try|be tried))|attempts will continue|still being retried|only a warning|warning only/i
const looksDelayed =
  /(has|have) not (yet )?been delivered|delivery (is |was |has been )?delayed|delayed \d+ hours|no action is required|warning: message/i
const looksFinal = /permanent|gave up|given up|giving up|fatal|failed/i

/** What a notification of success says of itself. */
const looksDelivered =
  /\b(was|were|has been|have been) (successfully )?(delivered|relayed)\b|^successful\b|^(delivered|relayed|expanded):|\((success|relayed?|expanded)\)|\bis complete\b/im

const address = /[^\s<>"'(),:;@[\]\\]{1,64}@[\p{L}\p{N}](?:[\p{L}\p{N}.-]{0,251}[\p{L}\p{N}])?/gu

/** What a server said, the more certain form first: `550 5.1.1 …`, then `550 …`. */
const certainReply = /(?<![\d.])[45]\d\d[ -]#?[245]\.\d{1,3}\.\d{1,3}(?![\d.])/
const replyForms: readonly RegExp[] = [certainReply, /(?<![\d.])[45]\d\d(?:[ -](?!\d)|: )/]
/** A status somewhere in the words of whoever reports: `(#5.1.1)`. */
const statusForm = /(?<![\d.])[45]\.\d{1,3}\.\d{1,3}(?![\d.])/

/** Whether a letter says that a message did not arrive; only the reply of a server outweighs that it says it did. */
export function isBounce(subject: string, letter: string): boolean {
  const text = beginningOf(letter)
  if (!looksLikeBounce.test(subject) && !looksLikeBounce.test(text)) return false
  return !(looksDelivered.test(subject) || looksDelivered.test(text)) || diagnosticIn(text) !== null
}

/**
 * Whether a letter may tell whom a message did not reach, and why, whoever has written it: its subject begins as
 * that of a bounce, or it has an address and what a server said.
 */
export function tellsOfFailure(subject: string, letter: string): boolean {
  if (subject.search(looksLikeBounce) === 0) return true
  const text = beginningOf(letter)
  if (text.search(address) === -1) return false
  return text.search(certainReply) !== -1 || (looksLikeBounce.test(text) && diagnosticIn(text) !== null)
}

/** `Hi. This is the qmail-send program at example.org.`, and what Yahoo once made of it. */
export function isQmailText(text: string): boolean {
  return /^\s*(hi\. this is the |message from \s*\S+\.\s*\n\s*unable to deliver)/i.test(text.slice(0, 1_000))
}

/**
 * What a letter says of each address in it, the message that came back with it left out.
 *
 * @param known Addresses it is about in any case.
 */
export function readBounceText(letter: string, known: readonly string[] = []): RecipientReport[] {
  const text = beginningOf(letter)
  const segments = segmentsOf(text)
  for (const each of known) if (!segments.has(each.toLowerCase())) segments.set(each.toLowerCase(), '')
  const isDelayed = stillTries.test(text) || (looksDelayed.test(text) && !looksFinal.test(text))
  const ofAll = diagnosticIn(text)
  return [...segments].map(([each, segment]) => ({
    addresses: [each],
    action: isDelayed ? 'delayed' : 'failed',
    status: null,
    diagnostic: diagnosticIn(segment) ?? ofAll ?? paragraphOf(segment),
    host: null,
  }))
}

/** What a letter says of itself, in front of the message that came back. */
function beginningOf(letter: string): string {
  const text = letter.slice(0, maxLength).replaceAll('\r\n', '\n')
  const at = text.search(original)
  return at > 0 ? text.slice(0, at) : text
}

/** What follows each address, until the next other one. */
function segmentsOf(text: string): Map<string, string> {
  const segments = new Map<string, string>()
  const found = [...text.matchAll(address)].slice(0, maxAddresses)
  for (const [index, { 0: name, index: at }] of found.entries()) {
    const key = name.toLowerCase()
    if (index > 0 && found[index - 1]?.[0].toLowerCase() === key) continue
    const next = found.slice(index + 1).find((other) => other[0].toLowerCase() !== key)
    segments.set(key, `${segments.get(key) ?? ''}\n${text.slice(at + name.length, next?.index)}`)
  }
  return segments
}

function diagnosticIn(text: string): string | null {
  const at = replyForms.map((form) => text.search(form)).find((index) => index !== -1)
  if (at !== undefined) return paragraphOf(text.slice(at))
  return statusForm.test(text) ? paragraphOf(text) : null
}

/** The beginning, in one line. */
function paragraphOf(text: string): string | null {
  const [paragraph = ''] = text
    .replace(/^[>:\s]+/, '')
    .slice(0, maxDiagnosticLength)
    .split(/\n\s*\n|[>']\s*(?:\n|$)|\n(?=giving up on|i'm not going to try)/i)
  return paragraph.replace(/\s+/g, ' ').trim() || null
}

/** HTML as text, near enough to find what a server said. */
export function textOfHtml(html: string): string {
  return html
    .slice(0, 4 * maxLength)
    .replace(/<(?:br|\/p|\/div|\/tr|\/h\d)\b[^<>]{0,200}>/gi, '\n')
    .replace(/<[^<>]{0,2000}>/g, '')
    .replace(/&(lt|gt|amp|quot|nbsp|#39);/g, (_, name: string) => entities[name] ?? ' ')
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', nbsp: ' ', '#39': "'" }
