import { exampleId } from '../../contract/ids.ts'

type Attempt = {
  operationId: string
  /** 401: it would have the person be written to again. */
  status: number
  body?: (person: { email: string }) => unknown
}

/** Returns the attempts of a test key on people and lists, by name: each operation that both modes share. */
export function triesToReach(unsubscribedFrom: 'an audience' | 'everything'): [string, Attempt][] {
  const isEverything = unsubscribedFrom === 'everything'
  const active = () => ({ status: 'active' })
  const attempts: Record<string, Attempt> = {
    'to add the subscriber again': { operationId: 'createSubscriber', status: 409, body: ({ email }) => ({ email }) },
    'to make the subscriber active': {
      operationId: 'updateSubscriber',
      status: isEverything ? 401 : 200,
      body: active,
    },
    'to free the address': {
      operationId: 'updateSubscriber',
      status: 401,
      body: ({ email }) => ({ email: `not-${email}` }),
    },
    'to write the address otherwise': {
      operationId: 'updateSubscriber',
      status: 200,
      body: ({ email }) => ({ email: email.toUpperCase(), firstName: 'Ada' }),
    },
    'to delete the subscriber': { operationId: 'deleteSubscriber', status: 401 },
    'to unsubscribe once more': { operationId: 'unsubscribeSubscriber', status: 200 },
    'to choose topics for the subscriber': {
      operationId: 'updateSubscriberTopics',
      status: 422,
      body: () => ({ topics: [{ topicId: exampleId('topic'), subscribed: true }] }),
    },
    'to make another audience': { operationId: 'createAudience', status: 201, body: () => ({ name: 'News' }) },
    'to change the audience': { operationId: 'updateAudience', status: 200, body: () => ({ name: 'Newer' }) },
    'to delete the audience': { operationId: 'deleteAudience', status: 401 },
    'to add the contact again': { operationId: 'addContact', status: 409, body: ({ email }) => ({ email }) },
    'to add the contact in a batch': {
      operationId: 'addContactBatch',
      status: 200,
      body: ({ email }) => ({ contacts: [{ email, firstName: 'Eve' }], conflict: 'update', status: 'active' }),
    },
    'to make the contact active': { operationId: 'updateContact', status: isEverything ? 422 : 401, body: active },
    'to ask the contact to confirm': { operationId: 'sendContactConfirmation', status: 422 },
    'to remove the contact': { operationId: 'removeContact', status: 401 },
  }
  return Object.entries(attempts)
}
