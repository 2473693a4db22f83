import type { RecipientReport } from './read-dsn.ts'

/*
 * Reads notifications that are only text for a person, as qmail and old servers write them. Heuristics find the
 * addresses and replies in them. The caller, who knows the recipients, selects the address that is meant.
 */

/** Maximum characters of a text to read. */
const maxLength = 65_536
/** Maximum addresses of a text to read. */
const maxAddresses = 100
const maxDiagnosticLength = 1_000

/** The line before the returned message. */
const original =
  /^(-{2,} ?(below this line is|this is a copy of|original message|returned message|the following is|undelivered message)|received: (from|by) |return-path: |original message headers|reporting-mta: )/im

/** Phrases of bounces, in the subject or the text. */
const looksLikeBounce =
  /undeliver(ed|able)|could not be delivered|cannot be delivered|can'?t be delivered|couldn'?t be delivered|delivery (to the following|has failed|failed|failure|status notification|notification)|failure notice|returned mail|returned to sender|unable to deliver|not able to deliver|wasn'?t able to deliver|did not reach|not (yet )?been delivered|mail delivery (failed|system)|nicht zugestellt|unzustellbar|non remis|no se (ha )?pud?o entregar/i

/** Phrases of servers that still try. */
const stillTries =
  /(will|is going to) (be retried|retry|keep trying|continue to (try|be tried))|attempts will continue|still being retried|only a warning|warning only/i
const looksDelayed =
  /(has|have) not (yet )?been delivered|delivery (is |was |has been )?delayed|delayed \d+ hours|no action is required|warning: message/i
const looksFinal = /permanent|gave up|given up|giving up|fatal|failed/i

/** Phrases of notifications of success. */
const looksDelivered =
  /\b(was|were|has been|have been) (successfully )?(delivered|relayed)\b|^successful\b|^(delivered|relayed|expanded):|\((success|relayed?|expanded)\)|\bis complete\b/im

const address = /[^\s<>"'(),:;@[\]\\]{1,64}@[\p{L}\p{N}](?:[\p{L}\p{N}.-]{0,251}[\p{L}\p{N}])?/gu

/** Replies of a server, the more certain form first: `550 5.1.1 …`, then `550 …`. */
const certainReply = /(?<![\d.])[45]\d\d[ -]#?[245]\.\d{1,3}\.\d{1,3}(?![\d.])/
const replyForms: readonly RegExp[] = [certainReply, /(?<![\d.])[45]\d\d(?:[ -](?!\d)|: )/]
/** An enhanced status code anywhere in the text, such as `(#5.1.1)`. */
const statusForm = /(?<![\d.])[45]\.\d{1,3}\.\d{1,3}(?![\d.])/

/** Returns whether a text reports a failure. If it also reports success, it must contain an error reply of a server. */
export function isBounce(subject: string, letter: string): boolean {
  const text = beginningOf(letter)
  if (!looksLikeBounce.test(subject) && !looksLikeBounce.test(text)) return false
  return !(looksDelivered.test(subject) || looksDelivered.test(text)) || diagnosticIn(text) !== null
}

/**
 * Returns whether a text of any author may report a failure: its subject begins like that of a bounce, or it has an
 * address and a reply of a server.
 */
export function tellsOfFailure(subject: string, letter: string): boolean {
  if (subject.search(looksLikeBounce) === 0) return true
  const text = beginningOf(letter)
  if (text.search(address) === -1) return false
  return text.search(certainReply) !== -1 || (looksLikeBounce.test(text) && diagnosticIn(text) !== null)
}

/** Detects `Hi. This is the qmail-send program at example.org.`, and the old variant of Yahoo. */
export function isQmailText(text: string): boolean {
  return /^\s*(hi\. this is the |message from \s*\S+\.\s*\n\s*unable to deliver)/i.test(text.slice(0, 1_000))
}

/**
 * Returns a report for each address in a text, without the returned message in it.
 *
 * @param known Addresses to report in any case.
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

/** Returns the text before the returned message. */
function beginningOf(letter: string): string {
  const text = letter.slice(0, maxLength).replaceAll('\r\n', '\n')
  const at = text.search(original)
  return at > 0 ? text.slice(0, at) : text
}

/** Returns the text after each address, up to the next different address. */
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

/** Returns the first paragraph on one line. */
function paragraphOf(text: string): string | null {
  const [paragraph = ''] = text
    .replace(/^[>:\s]+/, '')
    .slice(0, maxDiagnosticLength)
    .split(/\n\s*\n|[>']\s*(?:\n|$)|\n(?=giving up on|i'm not going to try)/i)
  return paragraph.replace(/\s+/g, ' ').trim() || null
}

/** Converts HTML to text, well enough to find the reply of a server. */
export function textOfHtml(html: string): string {
  return html
    .slice(0, 4 * maxLength)
    .replace(/<(?:br|\/p|\/div|\/tr|\/h\d)\b[^<>]{0,200}>/gi, '\n')
    .replace(/<[^<>]{0,2000}>/g, '')
    .replace(/&(lt|gt|amp|quot|nbsp|#39);/g, (_, name: string) => entities[name] ?? ' ')
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', nbsp: ' ', '#39': "'" }
