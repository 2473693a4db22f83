import type { AppRoute } from '@ts-rest/core'
import { describe, expect, test } from 'vitest'
import { maxAllowedAddresses, maxKeys } from '../../contract/api-keys.ts'
import { auditLogDays } from '../../contract/audit-log.ts'
import { abTestLimits } from '../../contract/campaign-ab-test.ts'
import { campaignLimits } from '../../contract/campaign-resource.ts'
import { maxDomainLength, maxDomains, maxReturnPathBelow, maxReturnPathLength } from '../../contract/domains.ts'
import { emailLimits } from '../../contract/email-content.ts'
import { errorTable } from '../../contract/errors.ts'
import { eventTypes } from '../../contract/event-types.ts'
import { importLimits } from '../../contract/import-files.ts'
import { keptInboundBytes } from '../../contract/inbound-limits.ts'
import { contract } from '../../contract/index.ts'
import { pageSize } from '../../contract/pagination.ts'
import { keyPermissions, type PermissionSet, permissionSets } from '../../contract/permissions.ts'
import {
  maxConcurrentCustomerTests,
  maxPortalSessions,
  portalLinkMinutes,
  portalSessionHours,
} from '../../contract/portal-sessions.ts'
import { requestLogBytesPerDay, requestLogDays } from '../../contract/request-logs.ts'
import { hourlyDays, maxKeysPerDay, maxRangeDays } from '../../contract/statistics.ts'
import { templateLimits } from '../../contract/template-variables.ts'
import { totpConfirmMinutes } from '../../contract/user.ts'
import { maxConcurrentTests } from '../../contract/webhooks.ts'
import { confirmationLimits } from '../../server/audiences/confirmation.ts'
import { unconfirmedAtOnce } from '../../server/audiences/unconfirmed.ts'
import { keptForOperator, keptPerAccount as keptInbound } from '../../server/bounces/receive.ts'
import { maxInboundBytes } from '../../server/bounces/start.ts'
import { readConfig } from '../../server/config/config.ts'
import { defaultBudgetMs } from '../../server/domains/dns.ts'
import {
  dailyMs,
  firstPauseMs,
  longestPauseMs,
  missesUntilFailed,
  patienceMs,
} from '../../server/domains/verification-state.ts'
import { candidates, emailsLookedThrough, maxKeys as maxSearchedKeys } from '../../server/emails/search-queries.ts'
import { maxStreams, maxStreamsPerAccount } from '../../server/events/streams.ts'
import { heartbeatMs } from '../../server/http/event-stream.ts'
import { maxLinkLength, maxLinks } from '../../server/message/links.ts'
import { subjectKeyLength } from '../../server/message/subject-key.ts'
import { renderingLimits } from '../../server/rendering/limits.ts'
import { personLimitMs } from '../../server/rendering/renderer.ts'
import { conversationTimeoutMs, finalTimeoutMs } from '../../server/smtp/time-limits.ts'
import { maxCapturedBytes } from '../../server/stored-messages/capture-listener.ts'
import { keptPerAccount as keptCaptured } from '../../server/stored-messages/capture-store.ts'
import { minReadingMs } from '../../server/tracking/automated-visits.ts'
import { invitationEmailsADay, resetPauseMs, resetsAnHour } from '../../server/users/account-emails.ts'
import { delayAfter, freeTries, maxPairs } from '../../server/users/sign-in-delays.ts'
import { maxRetryDelaySeconds, retryDelaysSeconds } from '../../server/webhook-delivery/attempt/retry-schedule.ts'
import { initialLimit } from '../../server/webhook-delivery/scheduling/flow-limit.ts'
import { failingLimitMs } from '../../server/webhook-delivery/settlement/webhook-health.ts'
import { codeIn, readDocument, sectionOfPages, tableOf, unwrapped } from './document.ts'

/*
 * Statements of the README and its pages about the service, compared with the code. Whole tables are generated from the
 * code instead: `npm run docs:reference`.
 */

const defaults = readConfig({})

/** A number as the pages write it. */
function written(number: number): string {
  return number.toLocaleString('en')
}

const secondsOf: Readonly<Record<string, number>> = { second: 1, minute: 60, hour: 3_600, day: 86_400 }

/** `5 minutes after …` in seconds. */
function durationIn(text: string): number {
  const [, count, unit = ''] = /(\d+) (second|minute|hour|day)s?\b/.exec(text) ?? []
  return Number(count) * (secondsOf[unit] ?? Number.NaN)
}

test('tracking has the limits it has', () => {
  const section = unwrapped(sectionOfPages('Opens, clicks and unsubscribing'))
  expect(section).toContain(`the first ${written(maxLinks)} links`)
  expect(section).toContain(`up to ${written(maxLinkLength)} characters`)
  expect(section).toContain(`within ${minReadingMs / 1000} seconds of the delivery`)
})

test('what the README says the service can do has the figures it has', () => {
  const section = sectionOfPages('What it can do')
  expect(section).toContain(`[one or ${emailLimits.batch} in a request]`)
  expect(section).toContain(`[${retryDelaysSeconds.length + 1} attempts]`)
})

describe('permissions', () => {
  const section = sectionOfPages('Authentication and permissions')

  const notRead = codeIn(tableOf(section).find(([set]) => set === '`read_access`')?.[1] ?? '').slice(1)

  test('the documents name what each set of permissions holds', () => {
    const described: Record<PermissionSet, readonly string[]> = {
      full_access: keyPermissions,
      sending_access: codeIn(tableOf(section).find(([set]) => set === '`sending_access`')?.[1] ?? ''),
      read_access: keyPermissions.filter((permission) => permission.endsWith(':read') && !notRead.includes(permission)),
    }
    expect(tableOf(section).map(([set]) => set)).toEqual(Object.keys(permissionSets).map((set) => `\`${set}\``))
    for (const [set, held] of Object.entries(permissionSets)) {
      expect(described[set as PermissionSet].toSorted()).toEqual(held.toSorted())
    }
  })

  test('the documents name every single permission', () => {
    const sentence = /The single ones are .+?\./.exec(unwrapped(section))?.[0] ?? ''
    expect(codeIn(sentence)).toEqual(keyPermissions)
  })
})

describe('delivery', () => {
  const section = sectionOfPages('How delivery works')
  const prose = unwrapped(section)

  test('the documents show every attempt of the delivery schedule with its delay', () => {
    const [first, ...retries] = tableOf(section)
    expect(first).toEqual(['1', 'at once'])
    expect(retries.map(([number, when = '']) => [Number(number), durationIn(when)])).toEqual(
      retryDelaysSeconds.map((seconds, index) => [index + 2, seconds]),
    )
  })

  test('the documents have the figures of delivery that the code has', () => {
    expect(durationIn(/lengthens the delay, up to [^.]+/.exec(prose)?.[0] ?? '')).toBe(maxRetryDelaySeconds)
    expect(prose).toContain('Five days of nothing but failures')
    expect(failingLimitMs).toBe(5 * 86_400_000)
    const { places, endpointMax } = defaults.delivery
    expect(prose).toContain(`has ${written(places)} places`)
    expect(prose).toContain(`begins with ${initialLimit}`)
    expect(prose).toContain(`from 1 to ${endpointMax}`)
  })
})

test('the time of an event has the name it has', () => {
  expect(unwrapped(sectionOfPages('Receiving webhooks'))).toContain(
    'in `timestamp` for an `email.*` event, and in `created` for all others',
  )
  for (const [name, { timeField }] of eventTypes) {
    expect([name, timeField]).toEqual([name, name.startsWith('email.') ? 'timestamp' : 'created'])
  }
})

test('domains are looked up as often as they are', () => {
  const section = unwrapped(sectionOfPages('Sending domains'))
  expect(section).toContain('a minute after the domain was added')
  expect(firstPauseMs).toBe(60_000)
  expect(section).toContain(`up to ${longestPauseMs / 3_600_000} hours, for ${patienceMs / 3_600_000} hours`)
  expect(section).toContain(`for at most ${defaultBudgetMs / 1_000} seconds`)
  expect(section).toContain(`when ${missesUntilFailed} daily checks in a row`)
  expect(dailyMs).toBe(86_400_000)
})

test('what one machine carries stands in the results of the benchmarks', () => {
  const [said = ''] = unwrapped(sectionOfPages('What one machine carries')).split('[')
  const measured = [...said.matchAll(/(\d[\d,.]*) (?:contacts|deliveries|messages|ms)/g)].map(
    ([, figure = '']) => figure,
  )
  expect(measured).toHaveLength(9)
  const results = readDocument('scripts/bench/RESULTS.md').text
  for (const figure of measured) expect(results).toMatch(new RegExp(`[| ]${figure} (?:/s|ms)`))
})

test('every POST with a key takes an Idempotency-Key', () => {
  const posts = Object.values(contract).flatMap((router) =>
    Object.values<AppRoute>(router).filter(
      ({ method, metadata }) => method === 'POST' && ['key', 'any'].includes(Object(metadata).caller),
    ),
  )
  expect(unwrapped(sectionOfPages('Idempotency'))).toContain('Every POST with an API key takes an `Idempotency-Key`')
  // A file that is imported twice changes nothing the second time.
  const without = posts.filter(({ metadata }) => Object(metadata).idempotency === 'none')
  expect(without.map(({ path }) => path)).toEqual(['/v1/imports'])
})

test('pages are as long as the contract lets them be', () => {
  expect(unwrapped(sectionOfPages('Pagination'))).toContain(
    `\`limit\` is 1 to ${pageSize.max}, by default ${pageSize.default}`,
  )
})

test('the page of limits has the limits of the code', () => {
  const megabyteMs = conversationTimeoutMs(1_000_000) - conversationTimeoutMs(0)
  expect(Object.fromEntries(tableOf(sectionOfPages('Limits')))).toMatchObject({
    'captured messages': `${maxCapturedBytes / 2 ** 20} MiB each, the newest ${written(keptCaptured)} of an account are kept`,
    'notifications about email': `${maxInboundBytes / 2 ** 20} MiB each; the first ${keptInboundBytes / 2 ** 20} MiB is read. The newest ${written(keptInbound)} of an account that were not understood are kept, and ${written(keptForOperator)} that belong to no account`,
    'body of a request to the API': `${written(defaults.http.maxBodyBytes)} bytes (\`MAX_BODY_BYTES\`)`,
    'body of a request with emails': `${written(defaults.http.maxEmailBodyBytes)} bytes (\`MAX_EMAIL_BODY_BYTES\`)`,
    'emails in a batch': String(emailLimits.batch),
    'recipients of an email': `${emailLimits.recipients}, in \`to\`, \`cc\` and \`bcc\` together`,
    'subject of an email': `${emailLimits.subjectOctets} octets`,
    'HTML and text of an email': `${emailLimits.contentBytes / 2 ** 20} MiB each`,
    'a template': `${templateLimits.sourceLength / 2 ** 10} KiB of HTML or MJML and of text, each; ${templateLimits.variables} variables; ${written(templateLimits.subjectCharacters)} characters of subject and ${templateLimits.preheaderCharacters} of preheader`,
    'HTML and text of a campaign': `${written(campaignLimits.contentLength)} UTF-16 code units and ${written(campaignLimits.contentBytes)} bytes each`,
    'segments of a campaign': String(campaignLimits.segments),
    'A/B test of a campaign': `${abTestLimits.variants.min} to ${abTestLimits.variants.max} variants with names of ${abTestLimits.nameCharacters} characters; the winner after 1 to ${abTestLimits.hours} hours`,
    'links and mailbox providers that statistics of a campaign tell apart': `${campaignLimits.links} links, ${campaignLimits.linkCharacters / 2 ** 10} KiB together; ${campaignLimits.providers} providers`,
    'variables of a campaign': `${templateLimits.variables}, ${campaignLimits.variablesBytes / 2 ** 10} KiB as JSON`,
    'templates of an account': `${written(templateLimits.templates)}; one more is answered ${errorTable.conflict.status} \`conflict\``,
    'versions of a template': `the newest ${templateLimits.versions} are kept`,
    'tags of Liquid in a part of a template': written(renderingLimits.tags),
    MJML: `${written(renderingLimits.mjmlElements)} elements, ${renderingLimits.mjmlAttributes} attributes of each, ${renderingLimits.depth} levels; compiled within ${renderingLimits.mjmlMs / 1000} seconds, to ${renderingLimits.outputLength / 2 ** 10} KiB of HTML`,
    'values for a template': `${templateLimits.valuesBytes / 2 ** 10} KiB as JSON`,
    'rendering one email': `${renderingLimits.renderMs} ms for each part, as Liquid counts it, and ${personLimitMs / 1_000} seconds in all; ${written(renderingLimits.renderUnits)} characters and entries in what a part makes; ${renderingLimits.outputLength / 2 ** 10} KiB of HTML and of text`,
    'topics of an import': String(importLimits.topics),
    'emails that ask a contact to confirm': `one in ${confirmationLimits.gapMs / 60_000} minutes, ${confirmationLimits.emails} in all; more is answered ${errorTable.confirmation_refused.status} \`confirmation_refused\`. A link holds for ${confirmationLimits.linkMs / 86_400_000} days`,
    'contacts that do not confirm': `deleted ${confirmationLimits.pendingMs / 86_400_000} days after the last email that asked them, ${written(unconfirmedAtOnce)} a minute`,
    'HTML that text is made from': `${renderingLimits.depth} nested elements`,
    'attachments of an email': `${emailLimits.attachments}, ${emailLimits.attachmentBytes / 2 ** 20} MiB in all`,
    'headers added to an email': `${emailLimits.headers}, ${emailLimits.headerOctets} octets each, ${emailLimits.headersOctets / 2 ** 10} KiB in all`,
    'tags of an email': `${emailLimits.tags}, of ${emailLimits.tagCharacters} characters`,
    'streams of events': `${maxStreamsPerAccount} of an account and ${maxStreams} in all, in each process; one more is answered ${errorTable.rate_limit_exceeded.status} \`rate_limit_exceeded\`; a reader that takes nothing for ${(2 * heartbeatMs) / 1000} seconds is cut off`,
    '`search` of emails': `${written(emailLimits.searchCharacters)} characters, of which ${subjectKeyLength} of a subject are compared; a page looks at ${candidates} emails that fit, or, where more than ${maxSearchedKeys} different addresses or subjects begin so, at the newest ${written(emailsLookedThrough)} of the account`,
    'filters of emails': `a page looks at twice the emails that it shows, and if these are not enough or with several filters, at the newest ${written(emailsLookedThrough)} of one filter or of the account`,
    '`scheduledAt`': `${emailLimits.scheduleDays} days ahead`,
    'conversation with a mail server': `${conversationTimeoutMs(0) / 60_000} minutes and a second for each ${1_000_000 / megabyteMs} kB, until it has the message; then ${finalTimeoutMs / 60_000} minutes for its answer`,
    'entries on a page': String(pageSize.max),
    'name of a sending domain': `${maxDomainLength} characters`,
    'return path of a sending domain': `${maxReturnPathBelow} characters, ${maxReturnPathLength} with the domain`,
    'sending domains of an account': `${written(maxDomains)}; one more is answered ${errorTable.conflict.status} \`conflict\``,
    'webhooks of an account': `${written(defaults.webhooks.maxPerAccount)}, test and live together (\`MAX_WEBHOOKS_PER_ACCOUNT\`); one more is answered ${errorTable.conflict.status} \`conflict\`; an account that has more keeps them, and can change and delete them`,
    'emails with invitations': `${invitationEmailsADay.ofAccount} of an account in 24 hours, ${invitationEmailsADay.ofAddress} of these to one address; one more is answered ${errorTable.conflict.status} \`conflict\``,
    'links that reset a password, by email': `one for an address within ${resetPauseMs / 60_000} minutes; ${resetsAnHour} requests of one client address in an hour, in each process`,
    'failed tries to sign in': `${freeTries} for an address from one client address without a delay, which then doubles from ${delayAfter(freeTries) / 1000} second up to ${delayAfter(1_000) / 60_000} minutes, in all processes together; forgotten after an hour, and beyond ${written(maxPairs)} pairs`,
    'secret of a second factor': `${totpConfirmMinutes} minutes to confirm it`,
    'webhooks of a customer in the portal': `${defaults.webhooks.maxPerCustomer} of each mode (\`MAX_WEBHOOKS_PER_CUSTOMER\`); one more is answered ${errorTable.conflict.status} \`conflict\`; those that the account makes for them count, and are not limited by it`,
    'portal sessions': `${maxPortalSessions.customer} of a customer and ${written(maxPortalSessions.account)} of an account, of each mode; the oldest ends for a new one; the link works once, for ${portalLinkMinutes} minutes; ${portalSessionHours.idle} hour without use, ${portalSessionHours.max} hours in all`,
    "tests of a customer's webhooks in flight": `${maxConcurrentCustomerTests} in each process, which count for the account too`,
    'API keys of an account': `${maxKeys} of each mode by the API, revoked ones too; one more is answered ${errorTable.conflict.status} \`conflict\`; the command line makes more`,
    'addresses and ranges of an API key': String(maxAllowedAddresses),
    'entries of the audit log': `kept for ${auditLogDays} days`,
    'request logs': `kept for ${requestLogDays} days, ${requestLogBytesPerDay / 2 ** 20} MiB a day of an account and mode; of requests that are refused with 401 or 429, 20 a second in each process, and none once a quarter of the day is used`,
    'tests of webhooks in flight': `${maxConcurrentTests} of an account in each process, test and live together; one more is answered ${errorTable.rate_limit_exceeded.status} \`rate_limit_exceeded\`, and nothing is sent`,
    'attempts of a delivery': String(retryDelaysSeconds.length + 1),
    '`Retry-After` of an endpoint': `${maxRetryDelaySeconds / 3_600} hours`,
    'deliveries in flight': `${written(defaults.delivery.places)} in a process (\`DELIVERY_PLACES\`), ${defaults.delivery.endpointMax} to one URL of an account in it (\`ENDPOINT_MAX_IN_FLIGHT\`), ${2 * defaults.delivery.endpointMax} to one host, ${1.5 * defaults.delivery.endpointMax} of these to URLs there that are not known to answer`,
    'statistics of one request': `${maxRangeDays.hour} days by hour, ${maxRangeDays.day} days by day; a ranking: ${maxRangeDays.ranking} days`,
    'domains, tags and webhooks with statistics of their own': `the first ${written(maxKeysPerDay)} of each kind in a day, of an account and mode`,
    statistics: `kept for ${hourlyDays} days by hour, ${defaults.statisticsMs / 86_400_000} days by day (\`STATISTICS_DAYS\`)`,
    'events, attempts and emails': `kept for ${defaults.retentionMs / 86_400_000} days (\`RETENTION_DAYS\`)`,
  })
})
