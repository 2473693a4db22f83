/**
 * The rule for a field of a body: the part of its value that is kept.
 *
 * - `value`: identifiers, times, true, false, and words that the contract lists, such as event types.
 * - `address`: an email address, without the name beside it.
 * - `domain`: the name of a domain.
 * - `origin`: scheme, host and port of a URL, because path and query may hold a secret.
 * - `size`: type and size only.
 * - Fields: an object, or a list of objects, of which these fields are kept.
 *
 * In a list, the rule applies to each entry. Of a value of another form, only type and size are kept.
 */
export type Keeping = 'value' | 'address' | 'domain' | 'origin' | 'size' | KeptFields

/** The rules of fields, by name. Fields that are not named here are counted. */
export type KeptFields = { readonly [name: string]: Keeping }

const email: KeptFields = {
  from: 'address',
  to: 'address',
  cc: 'address',
  bcc: 'address',
  replyTo: 'address',
  subject: 'size',
  html: 'size',
  text: 'size',
  headers: 'size',
  attachments: { filename: 'size', content: 'size', contentType: 'size', contentId: 'size' },
  metadata: 'size',
  tags: 'size',
  template: { id: 'value', variables: 'size' },
  audienceId: 'value',
  topicId: 'value',
  trackOpens: 'value',
  trackClicks: 'value',
  scheduledAt: 'value',
}

const webhook: KeptFields = { url: 'origin', events: 'value', description: 'size', metadata: 'size', status: 'value' }
const person: KeptFields = {
  email: 'address',
  firstName: 'size',
  lastName: 'size',
  status: 'value',
  properties: 'size',
}
const audience: KeptFields = {
  name: 'size',
  description: 'size',
  doubleOptIn: { from: 'address', subject: 'size', text: 'size' },
}
const contactProperty: KeptFields = { key: 'size', type: 'value', fallback: 'size' }
const topic: KeptFields = { name: 'size', description: 'size', default: 'value' }
const ownKey: KeptFields = { selector: 'size', privateKey: 'size' }
const dkimKeys: KeptFields = { rsa: ownKey, ed25519: ownKey }

/** Levels of conditions within conditions that are kept. */
const conditionDepth = 5

function conditionsTo(depth: number): Keeping {
  if (depth === 0) return 'size'
  const within = conditionsTo(depth - 1)
  return {
    type: 'value',
    conditions: within,
    condition: within,
    property: 'size',
    field: 'value',
    operator: 'value',
    value: 'size',
    event: 'value',
    inLastDays: 'value',
    campaignId: 'value',
    topicId: 'value',
    subscribed: 'value',
  }
}

const segment: KeptFields = { audienceId: 'value', name: 'size', conditions: conditionsTo(conditionDepth) }

const content: KeptFields = { preheader: 'size', html: 'size', mjml: 'size', text: 'size', fallbacks: 'size' }

const template: KeptFields = {
  name: 'size',
  subject: 'size',
  preheader: 'size',
  html: 'size',
  mjml: 'size',
  text: 'size',
  variables: { name: 'size', type: 'value', required: 'value', fallback: 'size' },
}

const campaign: KeptFields = {
  name: 'size',
  audienceId: 'value',
  segmentIds: 'value',
  topicId: 'value',
  from: 'address',
  replyTo: 'address',
  subject: 'size',
  content,
  templateId: 'value',
  variables: 'size',
  trackOpens: 'value',
  trackClicks: 'value',
  tags: 'size',
  metadata: 'size',
  throttle: 'value',
  sendWindow: { from: 'value', to: 'value', timezone: 'value', days: 'value' },
  lateStart: 'value',
  archive: 'value',
  abTest: {
    share: 'value',
    winnerBy: 'value',
    hours: 'value',
    variants: { name: 'size', subject: 'size', content, templateId: 'value' },
  },
}

/** The fields that are kept of the body of a failed request, by operation. Of other operations, nothing is kept. */
export const keptFields: Readonly<Record<string, KeptFields>> = {
  createWebhook: webhook,
  updateWebhook: webhook,
  testWebhook: { type: 'value' },
  createPortalSession: {
    customer: 'size',
    eventTypes: 'value',
    theme: { accentColor: 'size', colorScheme: 'value' },
  },
  recoverDeliveries: { since: 'value', until: 'value', types: 'value' },
  createSubscriber: person,
  updateSubscriber: person,
  createAudience: audience,
  updateAudience: audience,
  addContact: person,
  addContactBatch: { contacts: person, conflict: 'value', status: 'value' },
  updateContact: person,
  createContactProperty: contactProperty,
  updateContactProperty: contactProperty,
  createSegment: segment,
  previewSegment: segment,
  updateSegment: segment,
  createTopic: topic,
  updateTopic: topic,
  updateSubscriberTopics: { topics: { topicId: 'value', subscribed: 'value' } },
  createDomain: { name: 'domain', returnPath: 'domain', dkimKeys },
  rotateDomainKeys: { dkimKeys },
  sendEmail: email,
  sendEmailBatch: { emails: email },
  updateEmail: { scheduledAt: 'value' },
  createTemplate: template,
  updateTemplate: template,
  renderTemplate: { version: 'value', variables: 'size' },
  createCampaign: campaign,
  updateCampaign: campaign,
  sendCampaign: { scheduledAt: 'value', localTime: 'value', fallbackTimezone: 'value' },
  chooseCampaignWinner: { variant: 'size' },
  testCampaign: { to: 'address', subscriberId: 'value', variant: 'size' },
  renderCampaign: {
    subject: 'size',
    content,
    templateId: 'value',
    variables: 'size',
    subscriberId: 'value',
    variant: 'size',
  },
  createSuppression: { address: 'address' },
  updateBrand: { name: 'size', accentColor: 'size', text: 'size' },
  createApiKey: { name: 'size', permissions: 'value', mode: 'value', expiresAt: 'value', allowedAddresses: 'size' },
}

/** Parameters of a query, and what is kept of each. Others are left out of the path. */
export const keptInQuery: ReadonlyMap<string, 'value' | 'address' | 'size'> = new Map([
  ...[
    ...['limit', 'cursor', 'status', 'eventType', 'since', 'until', 'from', 'type', 'after', 'order', 'mode', 'reason'],
    ...['emailId', 'campaign', 'domain', 'domainId', 'webhookId', 'step', 'by', 'key'],
  ].map((name) => [name, 'value'] as const),
  ...['email', 'recipient', 'address'].map((name) => [name, 'address'] as const),
  ...['search', 'tag'].map((name) => [name, 'size'] as const),
])

function namesOf(fields: KeptFields): string[] {
  return Object.entries(fields).flatMap(([name, kept]) =>
    typeof kept === 'string' ? [name] : [name, ...namesOf(kept)],
  )
}

/** Names of fields that may be kept in the path of a fault. Others may have been made up by the client. */
export const knownNames: ReadonlySet<string> = new Set([
  ...Object.values(keptFields).flatMap(namesOf),
  ...keptInQuery.keys(),
  ...['id', 'audienceId', 'subscriberId', 'deliveryId', 'recoveryId', 'metadata', 'idempotency-key'],
])
