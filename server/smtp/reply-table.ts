/** The command that the reply answers. `session`: anything before MAIL. */
export type ReplyStage = 'session' | 'mail' | 'rcpt' | 'data' | 'message'

/** The meaning of a refusal for a recipient. */
export type ReplyClass =
  | { kind: 'deferred'; congested: boolean }
  /** `hard`: the address is the reason, and must not be sent to again. */
  | { kind: 'bounced'; bounceType: 'hard' | 'soft' }

/** A rule. It matches when all its conditions match. */
export type ReplyRule = {
  /** The class of the reply code: 4 is temporary, 5 is permanent. */
  class: 4 | 5
  codes?: readonly number[]
  /** Tested against subject and detail of the enhanced code, such as `1.1`, without its class. Source: RFC 3463 §2. */
  enhanced?: RegExp
  /** Tested against the whole text of the reply on one line. Case-insensitive. */
  text?: RegExp
  stages?: readonly ReplyStage[]
  verdict: ReplyClass
  /** A sentence for people. */
  reason: string
}

/*
 * The table that classifies replies. The first rule that matches counts:
 *
 * 1. Known cases in which a provider or a common server uses a code differently from the RFC.
 * 2. Enhanced status codes. Source: RFC 3463, and IANA's SMTP Enhanced Status Codes Registry.
 * 3. Texts, if there is no enhanced code or it says nothing.
 * 4. The code alone, by the command.
 *
 * A 4xx is never a bounce. A 5xx is `hard` only if it says that the mailbox does not exist. Blocks, policies and full
 * mailboxes are temporary, and must not suppress an address for good.
 *
 * A host is slowed down (`congested`) by replies about itself or about this service: it is busy, full or faulty, or
 * asks for less. A reply about one address says nothing about the others. Neither does greylisting, which delays
 * unknown clients however little they send.
 */

const hard: ReplyClass = { kind: 'bounced', bounceType: 'hard' }
const soft: ReplyClass = { kind: 'bounced', bounceType: 'soft' }
const later: ReplyClass = { kind: 'deferred', congested: false }
const slower: ReplyClass = { kind: 'deferred', congested: true }

const noMailbox = 'There is no such mailbox.'
const disabled = 'The mailbox is disabled.'
const noMailDomain = 'The domain takes no mail for this address.'
export const noDomain = 'The domain does not exist, or has no mail server.'
const full = 'The mailbox is full.'
const tooLarge = 'The message is too large for the mail server.'
const rateLimited = 'The mail server asks for fewer messages or connections.'
const greylisted = 'The mail server asks strangers to come again later.'
const blocked = 'The mail server blocks the sender’s address or network, for its reputation.'
const unauthenticated = 'The mail server demands SPF, DKIM or DMARC that it did not find.'
const content = 'The mail server refused the content of the message.'
const policy = 'The mail server refused the message by its policy.'
const tlsNeeded = 'The mail server demands a secure connection or a login.'
const senderNotAccepted = 'The mail server does not accept the sender’s address.'
const noCapacity = 'The mail server has no capacity now.'
const faulty = 'The mail server cannot take any message now.'
const noRoom = 'The mail server has no room now.'
const looped = 'The message went in circles.'

const unknownMailbox =
  /(user|mailbox|recipient|account|address|mail ?box)( \S+)? (is )?(unknown|not (found|exist|known|available here)|does ?n[o']t exist|doesn't exist|invalid|no longer (exists|valid|available))|(unknown|no such|invalid|non-?existent|bad destination) (local )?(user|mailbox|recipient|account|address|person)|(does ?n[o'’]t|does not) have an? \S+ account|no mailbox (here )?by that name|no longer on server|not our customer|unrouteable address|email account that you tried to reach does not exist|recipient not found|user doesn't have/i
const disabledMailbox =
  /(mailbox|account|user|recipient|address)( \S+)? (has been |is |was )?(disabled|inactive|suspended|deactivated|closed|discontinued|terminated)|(disabled|inactive|suspended) (mailbox|account|user|recipient)/i
const fullMailbox =
  /(mailbox|inbox|account|user|recipient|quota)[^.]{0,40}(full|over ?quota|exceeded|out of (storage|space))|over ?quota|quota exceeded|out of storage|insufficient (disk|storage|mailbox) ?space/i
const rates =
  /too many (connections|messages|errors|sessions|concurrent)|rate[ -]?limit|throttl|too (fast|quickly|frequent)|slow down|exceeded the (rate|limit|maximum)|unusual rate|server busy|too much mail|connection limit|temporarily deferred|try again later.*(reputation|volume)|\b(RP-00[1-3]|TSS0\d|TS0[1-3])\b|(4\.16\.5\d)/i
/** A quota of the sender, which says so or names a time. Not one of a mailbox. */
const sendingQuota =
  /^(?!.*\b(mailbox|inbox|storage|disk)\b).*\b((hourly|daily|monthly|sending|outgoing|outbound)( \w+){0,2} (quota|limit)|(quota|limit)\b.{0,30}\bper (minute|hour|day|month))\b/i
const greylist =
  /gr[ea]y-?list|try (again|later) in \d+|postgrey|come back later|first (time|contact)|not yet authorized to deliver mail/i
/** About the server, not a mailbox. RFC 5321 §4.2.2: `insufficient system storage`; Exim: `space shortage`. */
const storage =
  /^(?!.*\b(mailbox|inbox|recipient|user|account|quota)\b).*(insufficient (system |disk |server |storage )*(storage|space|resources)|space shortage|disk (is )?full|out of (disk|memory))/i
/** Try again later, without mention of a mailbox. */
const tryLater =
  /^(?!.*\b(mailbox|inbox|recipient|user|account)\b).*\b(re)?try( (it|this|your message))?( again)? (later|at a later time)\b/i
const blocklists =
  /spamhaus|barracuda|spamcop|sorbs|proofpoint|black ?list|block ?list|blocked|banned|poor reputation|reputation|\bRBL\b|dnsbl|\b(S3140|S3150|AS\(?48\d\d|BL0\d|BL2\d|CS01|HM\d\d)\b/i
const authentication =
  /\b(DMARC|SPF|DKIM)\b|unauthenticated|not (pass|authenticated)|sender policy framework|(reverse dns|PTR record|rdns)/i
/** Not Exim's `Callout verification failed`, which is about the recipient. */
const senderRefused =
  /sender('?s)? ((e-?)?mail )?((address|domain|mailbox) )?(is |was |has been )?(rejected|refused|denied|invalid|unknown|unverified|not (found|known|exist|verified|valid)|does ?n[o'’]t exist|does not exist|can ?not be verified|could not be verified|verif(y|ication) (failed|error))|(invalid|unknown|unverified|unresolvable|bad|no such) sender|(could|can) ?not verify (the )?(sender|return[ -]?path)|(^|\s)verification failed for <|postmaster verification failed|callback setup failed/i
const spam = /\bspam\b|virus|malware|phish|content (rejected|restriction)|suspicious|unsolicited|bulk/i

/** Replies with a meaning that differs from the RFC. */
const exceptions: readonly ReplyRule[] = [
  // Microsoft: blocked at the edge of a tenant, because its directory has no such address.
  {
    class: 5,
    enhanced: /^4\.1$/,
    text: /recipient address rejected: access denied/i,
    verdict: hard,
    reason: noMailbox,
  },
  // Microsoft's consumer mail: "Requested action not taken: mailbox unavailable".
  {
    class: 5,
    enhanced: /^5\.0$/,
    stages: ['rcpt', 'message'],
    text: /mailbox unavailable/i,
    verdict: hard,
    reason: noMailbox,
  },
  // Microsoft: throttled and suspended senders.
  { class: 4, enhanced: /^7\.(5\d\d|65\d)$/, verdict: slower, reason: rateLimited },
  { class: 5, enhanced: /^7\.(5\d\d|6\d\d|7\d\d)$/, verdict: soft, reason: blocked },
  // Gmail: one address gets mail too quickly, which says nothing about the others.
  {
    class: 4,
    enhanced: /^2\.1$/,
    text: /receiving mail (at a rate|too quickly)/i,
    verdict: later,
    reason: 'The mailbox gets more mail than its server takes now.',
  },
  {
    class: 5,
    enhanced: /^2\.1$/,
    text: /receiving mail (at a rate|too quickly)/i,
    verdict: soft,
    reason: 'The mailbox gets more mail than its server takes now.',
  },
  // Servers that verify the sender at RCPT: Exim's callout says how that went, Postfix uses the codes of an unknown
  // mailbox.
  { class: 5, text: senderRefused, verdict: soft, reason: senderNotAccepted },
  // Postfix, about the domain of the recipient (RFC 7505): its SMTP client uses 5.1.0, its server 5.1.10.
  {
    class: 5,
    stages: ['rcpt', 'message'],
    text: /does not accept mail \(nullMX\)/i,
    verdict: hard,
    reason: noMailDomain,
  },
  // Exchange: the domain of the recipient does not exist.
  {
    class: 5,
    enhanced: /^4\.310$/,
    stages: ['rcpt', 'message'],
    text: /DNS domain \S+ does not exist/i,
    verdict: hard,
    reason: noDomain,
  },
  // Gmail: rate limits of the sending network.
  { class: 4, enhanced: /^7\.(28|23)$/, verdict: slower, reason: rateLimited },
  // Yahoo: "[TSS04] … temporarily deferred", also with a less specific enhanced code.
  { class: 4, text: /\bTS(S0\d|0[1-3])\b|temporarily deferred/i, verdict: slower, reason: rateLimited },
  // postscreen, once to each new client that passes its tests. Source: Postfix, POSTSCREEN_README, "after 220".
  {
    class: 4,
    codes: [450],
    enhanced: /^3\.2$/,
    stages: ['rcpt'],
    text: /^service currently unavailable$/i,
    verdict: later,
    reason: greylisted,
  },
  // Rspamd's greylisting has only this text. Source: its conf/modules.d/greylist.conf.
  { class: 4, enhanced: /^7\.1$/, stages: ['message'], text: /^try again later$/i, verdict: later, reason: greylisted },
  // Exim: a lookup of the sender or the recipient failed. Source: its smtp_in.c, smtp_handle_acl_fail.
  {
    class: 4,
    codes: [451],
    stages: ['rcpt'],
    text: /^temporary local problem/i,
    verdict: later,
    reason: 'The mail server cannot check the recipient or the sender now.',
  },
  { class: 4, text: /gr[ea]y-?list(ed|ing)/i, verdict: later, reason: greylisted },
  // A 5xx whose text says to try again later.
  { class: 5, text: /gr[ea]y-?list(ed|ing)/i, verdict: later, reason: greylisted },
  {
    class: 5,
    codes: [552],
    enhanced: /^5\.3$/,
    verdict: later,
    reason: 'The mail server takes fewer recipients at once.',
  },
  { class: 5, codes: [530], verdict: later, reason: tlsNeeded },
  // Policy codes that are used for mailboxes that do not exist.
  {
    class: 5,
    enhanced: /^7\.[01]$/,
    stages: ['rcpt'],
    text: /user unknown|no such (user|mailbox)|unknown user/i,
    verdict: hard,
    reason: noMailbox,
  },
]

/** Rules for enhanced codes, by subject. Source: RFC 3463 §3 and the registry. */
const enhancedCodes: readonly ReplyRule[] = [
  { class: 5, enhanced: /^1\.(1|3)$/, stages: ['rcpt', 'data', 'message'], verdict: hard, reason: noMailbox },
  { class: 5, enhanced: /^1\.(2|10)$/, stages: ['rcpt', 'data', 'message'], verdict: hard, reason: noMailDomain },
  {
    class: 5,
    enhanced: /^1\.6$/,
    stages: ['rcpt', 'data', 'message'],
    verdict: hard,
    reason: 'The mailbox has moved.',
  },
  { class: 5, enhanced: /^1\.(7|8)$/, verdict: soft, reason: senderNotAccepted },
  { class: 5, enhanced: /^2\.1$/, stages: ['rcpt', 'data', 'message'], verdict: hard, reason: disabled },
  { class: 5, enhanced: /^2\.2$/, verdict: soft, reason: full },
  { class: 4, enhanced: /^2\.2$/, verdict: later, reason: full },
  { class: 5, enhanced: /^(2\.3|3\.4)$/, verdict: soft, reason: tooLarge },
  // The mail system as a whole: RFC 3463 §3.4. For `3.3` and `3.4` the message is the reason.
  { class: 4, enhanced: /^(3\.1|3\.2|3\.5)$/, verdict: slower, reason: noCapacity },
  { class: 4, enhanced: /^3\.0$/, verdict: slower, reason: faulty },
  { class: 4, enhanced: /^4\.5$/, verdict: slower, reason: noCapacity },
  { class: 5, enhanced: /^4\.6$/, verdict: soft, reason: looped },
  { class: 4, enhanced: /^5\.3$/, verdict: later, reason: 'The mail server takes fewer recipients at once.' },
  { class: 5, enhanced: /^6\.\d+$/, verdict: soft, reason: content },
  { class: 5, enhanced: /^7\.(20|21|22|23|24|25|26|27|30|31)$/, verdict: soft, reason: unauthenticated },
  { class: 5, enhanced: /^7\.\d+$/, text: authentication, verdict: soft, reason: unauthenticated },
  { class: 5, enhanced: /^7\.\d+$/, text: blocklists, verdict: soft, reason: blocked },
  { class: 5, enhanced: /^7\.\d+$/, text: spam, verdict: soft, reason: content },
  { class: 5, enhanced: /^7\.\d+$/, verdict: soft, reason: policy },
  { class: 4, enhanced: /^7\.\d+$/, text: greylist, verdict: later, reason: greylisted },
  { class: 4, enhanced: /^7\.\d+$/, text: rates, verdict: slower, reason: rateLimited },
  { class: 4, enhanced: /^7\.0$/, codes: [421], verdict: slower, reason: rateLimited },
]

/** Rules for texts. Faults of the sender come first, so that they are never taken for faults of the address. */
const texts: readonly ReplyRule[] = [
  { class: 4, text: greylist, verdict: later, reason: greylisted },
  { class: 4, text: rates, verdict: slower, reason: rateLimited },
  { class: 4, enhanced: /^(?![12]\.)/, text: sendingQuota, verdict: slower, reason: rateLimited },
  { class: 4, enhanced: /^(?![12]\.)/, text: storage, verdict: slower, reason: noRoom },
  { class: 4, text: fullMailbox, verdict: later, reason: full },
  // Exchange: "Temporary server error … PRX4"; Postfix without its filter: "Service unavailable - try again later".
  // Not with an enhanced code about addresses or mailboxes: RFC 3463 §3.2, §3.3.
  { class: 4, codes: [421, 451, 452, 454], enhanced: /^(?![12]\.)/, text: tryLater, verdict: slower, reason: faulty },
  // A 450 is about the mailbox unless the enhanced code says otherwise: RFC 5321 §4.2.2.
  { class: 4, codes: [450], enhanced: /^[3-7]\./, text: tryLater, verdict: slower, reason: faulty },
  { class: 5, enhanced: /^(?![12]\.)/, text: sendingQuota, verdict: soft, reason: rateLimited },
  { class: 5, text: fullMailbox, verdict: soft, reason: full },
  { class: 5, text: blocklists, verdict: soft, reason: blocked },
  { class: 5, text: authentication, verdict: soft, reason: unauthenticated },
  {
    class: 5,
    text: /relay(ing)? (access )?(denied|not (permitted|allowed))|not (permitted|allowed) to relay/i,
    verdict: soft,
    reason: 'The mail server takes no mail for this domain.',
  },
  { class: 5, stages: ['rcpt', 'message'], text: disabledMailbox, verdict: hard, reason: disabled },
  { class: 5, stages: ['rcpt', 'message'], text: unknownMailbox, verdict: hard, reason: noMailbox },
  { class: 5, text: spam, verdict: soft, reason: content },
]

/** Rules for codes alone. Source: RFC 5321 §4.2.3. */
const codes: readonly ReplyRule[] = [
  {
    class: 4,
    codes: [421],
    verdict: slower,
    reason: 'The mail server is closing the connection, and asks to come again.',
  },
  { class: 4, codes: [450], verdict: later, reason: 'The mailbox cannot be reached now.' },
  // At RCPT this means a full mailbox or too many recipients: RFC 5321 §4.5.3.1.10.
  {
    class: 4,
    codes: [452],
    stages: ['session', 'mail', 'data', 'message'],
    enhanced: /^(?![125]\.|3\.[34])/,
    verdict: slower,
    reason: noRoom,
  },
  { class: 4, codes: [452], verdict: later, reason: noRoom },
  { class: 4, codes: [454], verdict: later, reason: 'The mail server cannot secure the connection now.' },
  { class: 4, verdict: later, reason: 'The mail server cannot take the message now.' },
  { class: 5, codes: [551], stages: ['rcpt'], verdict: hard, reason: 'The mailbox has moved.' },
  {
    class: 5,
    codes: [552],
    stages: ['rcpt', 'message'],
    verdict: soft,
    reason: 'The mailbox is full, or the message too large.',
  },
  { class: 5, codes: [556], stages: ['rcpt'], verdict: hard, reason: noMailDomain },
  { class: 5, stages: ['session'], verdict: soft, reason: 'The mail server takes no mail from this service.' },
  { class: 5, stages: ['mail'], verdict: soft, reason: 'The mail server does not accept the sender.' },
  { class: 5, stages: ['rcpt'], verdict: soft, reason: 'The mail server does not accept the recipient.' },
  { class: 5, verdict: soft, reason: 'The mail server refused the message.' },
]

/** All rules in the order of testing. The last ones match every 4xx and every 5xx. */
export const replyRules: readonly ReplyRule[] = [...exceptions, ...enhancedCodes, ...texts, ...codes]
