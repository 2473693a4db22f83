import { exampleId } from '../../contract/ids.ts'

const noUrl = 'https://example.com:99999/'
const noMailbox = 'ada@example.127'
const undeclared = { properties: { undeclared: 1 } }
const byUndeclared = { conditions: { type: 'property', property: 'undeclared', operator: 'is', value: 1 } }
const greeting = { name: 'Greeting', subject: 'Hello', text: 'Hello' }
const audienceId = exampleId('audience')

/** Requests that break a rule which no schema states, whatever is there, by operation. */
export const impossibleAlways: Readonly<Record<string, { json?: object; query?: string }>> = {
  createWebhook: { json: { url: noUrl, events: ['contact.created'] } },
  updateWebhook: { json: { url: noUrl } },
  createDomain: { json: { name: 'printer.local' } },
  rotateDomainKeys: { json: { dkimKeys: { rsa: { selector: 's1', privateKey: 'no key' } } } },
  createApiKey: { json: { name: 'x', permissions: ['events:read'], expiresAt: '2020-01-01T00:00:00Z' } },
  createImport: { query: '&columns[none]=email' },
  createSubscriber: { json: { email: 'ada@example.com', ...undeclared } },
  updateSubscriber: { json: undeclared },
  addContact: { json: { email: 'ada@example.com', ...undeclared } },
  createContactProperty: { json: { key: 'plan', type: 'number', fallback: 'free' } },
  updateContactProperty: { json: { fallback: 1 } },
  createSegment: { json: { audienceId, name: 'Nobody', ...byUndeclared } },
  previewSegment: { json: { audienceId, ...byUndeclared } },
  updateSegment: { json: byUndeclared },
  updateSubscriberTopics: { json: { topics: [{ topicId: exampleId('topic'), subscribed: true }] } },
  createTemplate: { json: { ...greeting, variables: [{ name: 'a', type: 'number', fallback: 'one' }] } },
  updateTemplate: { json: { variables: [{ name: 'a', type: 'list', fallback: 'one' }] } },
  renderTemplate: { json: { version: 'published' } },
  createSuppression: { json: { address: noMailbox } },
  listSuppressions: { query: `?address=${noMailbox}` },
  listWebhooks: { query: '?metadata[__proto__]=42' },
  listEmails: { query: `?recipient=${noMailbox}` },
  listDeliveries: { query: '?since=2026-03-01T00:00:00Z&from=2026-03-02T00:00:00Z' },
  getStatistics: { query: '?since=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z' },
  rankStatistics: { query: '?since=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z' },
}
