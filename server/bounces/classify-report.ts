import { domainToASCII } from 'node:url'
import { type Reply, textOfReply } from '../smtp/reply.ts'
import { judgeReply } from '../smtp/reply-rules.ts'
import { noDomain } from '../smtp/reply-table.ts'
import type { RecipientReport } from './delivery-status.ts'

/** What a report says of a failure, in the words of an SMTP conversation. */
export type ReportedFailure = { bounceType: 'hard' | 'soft'; reason: string; reply: string | null }

const code = /(?<![\d.])([45]\d\d)(?:[ -]|$)/
const enhancedCode = /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/
const bothCodes = /(?<![\d.])[45]\d\d[ -]#?(?:[245]\.\d{1,3}\.\d{1,3}[ :]?\s*)?|^2\d\d[ -](?:2\.\d{1,3}\.\d{1,3}\s*)?/g

/**
 * What a report of a failure means: judged by the rules for replies, as if its server had refused the
 * recipient itself. What would have been tried again there was given up elsewhere, which is nothing to
 * hold against the address.
 */
export function judgeFailure(report: Pick<RecipientReport, 'status' | 'diagnostic' | 'addresses'>): ReportedFailure {
  const reply = replyOf(report)
  if (isDomainNotFound(report)) return { bounceType: 'hard', reason: noDomain, reply: textOfReply(reply) }
  const { verdict, reason } = judgeReply(reply, 'rcpt')
  const text = report.status === null && report.diagnostic === null ? null : textOfReply(reply)
  if (verdict.kind === 'bounced') return { bounceType: verdict.bounceType, reason, reply: text }
  return { bounceType: 'soft', reason: `A mail server gave up. The last it was told: ${reason}`, reply: text }
}

/**
 * What Postfix says where the DNS has no such name (NXDOMAIN), or neither MX nor address records of it. Its status,
 * 5.4.4, is also that of other faults of routing. Source: Postfix, smtp_addr.c, dns_strerror.c.
 */
const nameNotFound =
  /Host or domain name not found\. Name service error for name=(\S+) type=\w+: Host (?:not found(?!, try again)|found but no data record of requested type)/i

/**
 * Whether the domain of the recipient itself was not found. Postfix says the same of a mail server that the MX
 * records name: that is a fault of the domain which can be mended, and tells nothing of the address.
 */
function isDomainNotFound({ status, diagnostic, addresses }: Parameters<typeof judgeFailure>[0]): boolean {
  const name = nameNotFound.exec((diagnostic ?? '').replace(/\s+/g, ' '))?.[1]
  if (name === undefined || status?.startsWith('4')) return false
  const asked = asciiName(name)
  return asked !== '' && addresses.some((address) => asciiName(address.slice(address.lastIndexOf('@') + 1)) === asked)
}

function asciiName(name: string): string {
  return domainToASCII(name.replace(/\.$/, ''))
}

/** The text of the reply a report tells of; null: it tells of none. */
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

/** `5.0.0` says nothing that the class does not. */
function isTelling(status: string | null): boolean {
  return status !== null && !status.endsWith('.0.0')
}

function codeOf(status: string | null): number {
  if (status?.startsWith('2')) return 250
  return status?.startsWith('4') ? 450 : 550
}
