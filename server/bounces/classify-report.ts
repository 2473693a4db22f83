import { domainToASCII } from 'node:url'
import { classifyReply } from '../smtp/classify-reply.ts'
import { type Reply, textOfReply } from '../smtp/reply.ts'
import { noDomain } from '../smtp/reply-table.ts'
import type { RecipientReport } from './read-dsn.ts'

/** A reported failure, in the form of the outcome of an SMTP conversation. */
export type ReportedFailure = { bounceType: 'hard' | 'soft'; reason: string; reply: string | null }

const code = /(?<![\d.])([45]\d\d)(?:[ -]|$)/
const enhancedCode = /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/
const bothCodes = /(?<![\d.])[45]\d\d[ -]#?(?:[245]\.\d{1,3}\.\d{1,3}[ :]?\s*)?|^2\d\d[ -](?:2\.\d{1,3}\.\d{1,3}\s*)?/g

/**
 * Classifies the report of a failure by the rules for SMTP replies, as if the server had refused RCPT itself. A
 * temporary failure becomes a soft bounce: another server gave up, which says nothing about the address.
 */
export function classifyFailure(report: Pick<RecipientReport, 'status' | 'diagnostic' | 'addresses'>): ReportedFailure {
  const reply = replyOf(report)
  if (isDomainNotFound(report)) return { bounceType: 'hard', reason: noDomain, reply: textOfReply(reply) }
  const { verdict, reason } = classifyReply(reply, 'rcpt')
  const text = report.status === null && report.diagnostic === null ? null : textOfReply(reply)
  if (verdict.kind === 'bounced') return { bounceType: verdict.bounceType, reason, reply: text }
  return { bounceType: 'soft', reason: `A mail server gave up. The last it was told: ${reason}`, reply: text }
}

/**
 * The text of Postfix for a name that does not exist (NXDOMAIN), or that has neither MX nor address records. Its
 * status, 5.4.4, is also used for other routing faults. Source: Postfix, smtp_addr.c, dns_strerror.c.
 */
const nameNotFound =
  /Host or domain name not found\. Name service error for name=(\S+) type=\w+: Host (?:not found(?!, try again)|found but no data record of requested type)/i

/**
 * Returns whether the domain of the recipient itself was not found. Postfix uses the same text for a mail server in
 * the MX records. That is a fault which the owner of the domain can repair, and it says nothing about the address.
 */
function isDomainNotFound({ status, diagnostic, addresses }: Parameters<typeof classifyFailure>[0]): boolean {
  const name = nameNotFound.exec((diagnostic ?? '').replace(/\s+/g, ' '))?.[1]
  if (name === undefined || status?.startsWith('4')) return false
  const asked = asciiName(name)
  return asked !== '' && addresses.some((address) => asciiName(address.slice(address.lastIndexOf('@') + 1)) === asked)
}

function asciiName(name: string): string {
  return domainToASCII(name.replace(/\.$/, ''))
}

/** Returns the text of the SMTP reply in a report; null: it has none. */
export function replyTextOf(report: Pick<RecipientReport, 'status' | 'diagnostic'>): string | null {
  return report.status === null && report.diagnostic === null ? null : textOfReply(replyOf(report))
}

function replyOf({ status, diagnostic }: Pick<RecipientReport, 'status' | 'diagnostic'>): Reply {
  const said = diagnostic ?? ''
  const enhanced = enhancedCode.exec(said)?.[1] ?? (isTelling(status) ? status : null)
  const given = code.exec(said)?.[1]
  const text = said.replace(bothCodes, ' ').replace(/\s+/g, ' ').trim()
  return { code: given === undefined ? codeOf(enhanced ?? status) : Number(given), enhanced, lines: [text] }
}

/** Returns whether a status says more than its class; `5.0.0` does not. */
function isTelling(status: string | null): boolean {
  return status !== null && !status.endsWith('.0.0')
}

function codeOf(status: string | null): number {
  if (status?.startsWith('2')) return 250
  return status?.startsWith('4') ? 450 : 550
}
