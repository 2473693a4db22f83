import { readFields } from './headers.ts'

/** The Action field of a notification: the result for a recipient. Source: RFC 3464 §2.3.3. */
export type Action = 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded'

/** The report of a notification about one recipient. */
export type RecipientReport = {
  /** Possible addresses of the recipient: the one the sender used, and the one the reporting server used. */
  addresses: readonly string[]
  action: Action
  /** The enhanced status code, such as `5.1.1`; null: none. Source: RFC 3463. */
  status: string | null
  /** The reply of the server that refused or delayed the message; null: none. */
  diagnostic: string | null
  /** The host name of that server; null: not known. */
  host: string | null
}

const actions: readonly Action[] = ['failed', 'delayed', 'delivered', 'relayed', 'expanded']

const addressFields: readonly string[] = ['original-recipient', 'final-recipient', 'x-actual-recipient']
const recipientFields: readonly string[] = [
  ...addressFields,
  'action',
  'status',
  'diagnostic-code',
  'remote-mta',
  'last-attempt-date',
  'final-log-id',
  'will-retry-until',
]

/** Maximum recipients of one notification. */
const maxRecipients = 200
/** Maximum length of an address with its type and a comment. */
const maxAddressLength = 500

type Block = { fields: Map<string, string>; isClosed: boolean }

/**
 * Parses the recipients in the text of a delivery status. A new block begins after an empty line or when a field
 * repeats, because empty lines may be missing. Source: RFC 3464 §2.1, §2.3; RFC 6533 §3.
 */
export function readDeliveryStatus(text: string): RecipientReport[] {
  const blocks: Block[] = []
  for (const { name, value, isAfterBlank } of readFields(text)) {
    let block = blocks.at(-1)
    if (block !== undefined && isAfterBlank) block.isClosed = true
    if (!recipientFields.includes(name)) continue
    if (block === undefined || block.fields.has(name) || (addressFields.includes(name) && isDone(block))) {
      if (blocks.length >= maxRecipients) break
      block = { fields: new Map(), isClosed: false }
      blocks.push(block)
    }
    block.fields.set(name, value)
  }
  return blocks.flatMap(({ fields }) => reportOf(fields))
}

/** Returns whether the next address field belongs to another recipient. */
function isDone({ fields, isClosed }: Block): boolean {
  return isClosed && addressFields.some((name) => fields.has(name)) && (fields.has('action') || fields.has('status'))
}

function reportOf(fields: ReadonlyMap<string, string>): RecipientReport[] {
  const status = /\b[245]\.\d{1,3}\.\d{1,3}\b/.exec(fields.get('status') ?? '')?.[0] ?? null
  const action = actionOf(fields.get('action') ?? '', status)
  const addresses = addressFields.flatMap((name) => readTypedAddress(fields.get(name) ?? ''))
  if (action === null || addresses.length === 0) return []
  const diagnostic = fields.get('diagnostic-code')
  const host = /^[\w.-]+/.exec(withoutType(fields.get('remote-mta') ?? ''))?.[0]
  return [
    {
      addresses: [...new Set(addresses)],
      action,
      status,
      diagnostic: diagnostic === undefined ? null : withoutType(diagnostic),
      host: host ?? null,
    },
  ]
}

function actionOf(value: string, status: string | null): Action | null {
  const word = /[a-z]+/.exec(value.toLowerCase())?.[0]
  const known = actions.find((action) => action === word)
  if (known !== undefined) return known
  if (status === null) return null
  return ({ 2: 'delivered', 4: 'delayed', 5: 'failed' } as const)[status[0] as '2' | '4' | '5']
}

/** Removes the type, such as `smtp;` in `smtp; 550 …`. */
function withoutType(value: string): string {
  return value.replace(/^\s*[\w.-]{1,50}\s*;\s*/, '').trim()
}

/** Reads the address in `rfc822; ada@example.org`. Returns also its decoded forms, in case it is still encoded. */
export function readTypedAddress(value: string): string[] {
  const address = withoutType(value.slice(0, maxAddressLength))
    .replace(/\s*\([^()]{0,500}\)\s*$/, '')
    .replace(/^<(.*)>$/, '$1')
    .trim()
  if (!address.includes('@')) return []
  return [...new Set([address, decodeXtext(address), decodeUnitext(address)])]
}

/** Decodes xtext. Source: RFC 3461 §4. */
function decodeXtext(text: string): string {
  return text.replace(/\+([0-9A-F]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
}

/** Decodes unitext. Source: RFC 6533 §3. */
function decodeUnitext(text: string): string {
  return text.replace(/\\x\{([0-9A-F]{2,6})\}/g, (whole, digits: string) => {
    const point = Number.parseInt(digits, 16)
    return point > 0x10ffff ? whole : String.fromCodePoint(point)
  })
}
