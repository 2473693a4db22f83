import { pageSize } from '../contract/pagination.ts'
import { grants, permissionSets } from '../contract/permissions.ts'

const sets = Object.keys(permissionSets)
const single = grants.filter((grant) => !sets.includes(grant))
const code = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ')

/** The first thing a newcomer reads: what holds for every operation. Markdown. */
export const introduction = `Postern sends email and tells you what happens: every change becomes an event that is pushed to your URL as a signed webhook.

## Authentication

Every request carries an API key: \`Authorization: Bearer postern_live_…\`. A test key (\`postern_test_…\`) does everything but send email. A key belongs to one account and sees nothing of another. It holds sets of permissions (${code(sets)}) or single ones (${code(single)}); each operation names the one it needs. Keep keys on servers: not in a browser, not in version control.

The dashboard uses the same operations with the session of a user, a cookie. Such a request needs the header \`X-Postern-Dashboard: 1\`. \`X-Postern-Account\` gives its account, and \`X-Postern-Mode\` its mode (\`test\` or \`live\`, by default \`live\`). The role of the user decides what it may do. A \`GET\` with \`X-Postern-Unattended: 1\` does not count as a use of the session, which ends when it is not used: a page sends it when it had no input for a minute. A request with an \`Authorization\` header is judged by that alone. A customer in the portal has the token or the cookie of a portal session in place of a key, for the operations that are part of the portal.

## Errors

Every failure has the same body: \`error.code\` for programs, \`error.message\` for people, \`error.details\` where single fields are at fault, and \`error.requestId\` to quote when you ask for help. Unknown fields and query parameters are refused, so that a typing error does not pass for success. Beyond what the operations list, any request can be answered 400 \`malformed_request\`, 403 \`forbidden_origin\` (a session used by a foreign page), 404 \`not_found\` (no such path, or an account that the user is no member of), 405 \`method_not_allowed\`, 408 \`request_timeout\` or 431 \`headers_too_large\`.

## Rate limits

Each account may make so many requests a minute, by its plan. \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\` (Unix time in seconds) are on every answer to a valid key or session (each user may make 1,200 requests a minute, and each client address 60 that need neither); 429 carries \`Retry-After\` in whole seconds.

## Idempotency

A POST that creates or sends takes an \`Idempotency-Key\` of your choice, such as a UUID. Sent again within 24 hours, the same request with the same key is not done twice: the first answer comes back, with \`Idempotent-Replayed: true\`. The same key with another request is refused with 409 \`idempotency_conflict\`.

## Lists

A list answers \`data\` and \`nextCursor\`. Give \`nextCursor\` as \`cursor\` to get the next page, until it is \`null\`; \`limit\` is 1 to ${pageSize.max}, by default ${pageSize.default}. What is added meanwhile neither repeats nor hides an entry.

Lists that can be limited by time take \`since\` (inclusive) and \`until\` (exclusive).

## Versions

The version stands in the path: \`/v1\`. Within it, operations, optional parameters, fields of answers, event types, error codes and values of enumerations may be added: ignore what you do not know. What a client can rely on is not taken away and does not get another meaning; that is for \`/v2\`, and \`/v1\` goes on beside it for two years at least.

A query parameter, an operation or a field that is replaced is marked \`deprecated\` here and works for at least one more year. Successful responses to requests that use such a parameter or operation have the headers \`Deprecation\` (RFC 9745: the date of the deprecation) and \`Sunset\` (RFC 8594: the earliest date at which it may stop working).

## Receiving webhooks

A delivery is a POST of one event as JSON: a \`PushedEvent\`, a union that \`type\` tells apart. Its \`X-Service-Signature\` is the lowercase hexadecimal HMAC-SHA-256 of the raw body, keyed with the \`secret\` the webhook was created with, as the whole string. Compute it over the bytes as they came, compare in constant time, answer 401 if it differs, and parse only then:

\`\`\`js
const expected = Buffer.from(createHmac('sha256', secret).update(rawBody).digest('hex'))
const given = Buffer.from(request.headers['x-service-signature'] ?? '')
const genuine = given.length === expected.length && timingSafeEqual(given, expected)
\`\`\`

Each delivery also carries the \`webhook-id\`, \`webhook-timestamp\` and \`webhook-signature\` headers of Standard Webhooks, so that a ready-made library can verify it and refuse replays. Answer 2xx within 30 seconds; anything else is tried again 5 times, after 1 minute, 5 minutes, 30 minutes, 2 hours and 24 hours. An event can arrive more than once and out of order: remember its \`id\`.`
