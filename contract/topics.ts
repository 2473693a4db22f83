import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { list, text, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

/** Topics of an account. */
export const maxTopics = 200

const name = text(200).min(1).meta({ description: 'What people know it by.', example: 'Product news' })
const description = text(500).nullable().optional().meta({ description: 'What they get with it.' })

const topicDefault = z.enum(['opt_in', 'opt_out']).meta({
  id: 'TopicDefault',
  description:
    'Whether people get it who chose nothing. `opt_out`: they do, until they leave. `opt_in`: they do not, until they join.',
})

const topic = z
  .object({
    id: idSchema('topic', 'Identifies the topic.'),
    name: z.string(),
    description: z.string().nullable(),
    default: topicDefault,
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({
    id: 'Topic',
    description: 'What people may subscribe to or leave.',
    example: {
      id: exampleId('topic'),
      name: 'Product news',
      description: 'Once a month.',
      default: 'opt_out',
      createdAt: '2026-03-01T09:30:00.000Z',
      updatedAt: '2026-03-01T09:30:00.000Z',
    },
  })

const createTopic = z
  .strictObject({ name, description, default: topicDefault })
  .meta({ id: 'CreateTopic', description: 'The topic to add.', example: { name: 'Product news', default: 'opt_out' } })

const updateTopic = z
  .strictObject({ name: name.optional(), description })
  .meta({ id: 'UpdateTopic', description: 'The fields to change.', example: { name: 'News of our products' } })

const subscriberTopic = z
  .object({
    topicId: idSchema('topic', 'The topic.'),
    name: z.string(),
    default: topicDefault,
    subscribed: z.boolean().meta({ description: 'Whether the person gets it: what they chose, or else the default.' }),
    chosenAt: timestamp.nullable().meta({ description: 'When that was chosen. Null: nothing was chosen.' }),
  })
  .meta({
    id: 'SubscriberTopic',
    description: 'A topic, and whether a person gets it.',
    example: {
      topicId: exampleId('topic'),
      name: 'Product news',
      default: 'opt_out',
      subscribed: false,
      chosenAt: '2026-03-01T09:30:00.000Z',
    },
  })

const subscriberTopicList = z.object({ data: z.array(subscriberTopic) }).meta({
  id: 'SubscriberTopicList',
  description: 'All topics of the account, newest first, and which of them a person gets.',
  example: { data: [subscriberTopic.meta()?.example] },
})

const topicChoice = z.strictObject({
  topicId: idSchema('topic', 'The topic.'),
  subscribed: z.boolean().meta({ description: 'Whether the person gets it.' }),
})

const updateSubscriberTopics = z.strictObject({ topics: list(topicChoice, { min: 1, max: maxTopics }) }).meta({
  id: 'UpdateSubscriberTopics',
  description: 'The topics to change. Others stay as they are.',
  example: { topics: [{ topicId: exampleId('topic'), subscribed: false }] },
})

const idParam = z.object({ id: idSchema('topic', 'The topic.') })
const subscriberParam = z.object({ id: idSchema('subscriber', 'The person.') })

export type Topic = z.infer<typeof topic>
export type TopicDefault = z.infer<typeof topicDefault>
export type CreateTopic = z.infer<typeof createTopic>
export type UpdateTopic = z.infer<typeof updateTopic>
export type SubscriberTopic = z.infer<typeof subscriberTopic>
export type TopicChoice = z.infer<typeof topicChoice>

export const topics = c.router({
  create: {
    method: 'POST',
    path: '/v1/topics',
    summary: 'Create a topic',
    description: `People may subscribe to it or leave it from then on. Its \`default\` stays as it is. 409 when the account has ${maxTopics} topics.`,
    body: createTopic,
    ...outcome(
      {
        operationId: 'createTopic',
        tag: 'Topics',
        permission: 'topics:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['conflict'],
      },
      { 201: topic },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/topics',
    summary: 'List topics',
    description: 'Newest first.',
    query: z.strictObject(pageQuery),
    ...outcome(
      { operationId: 'listTopics', tag: 'Topics', permission: 'topics:read' },
      { 200: pageOf(topic, 'TopicPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/topics/:id',
    summary: 'Get a topic',
    description: 'One topic.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'getTopic', tag: 'Topics', permission: 'topics:read', errors: ['not_found'] },
      { 200: topic },
    ),
  },
  update: {
    method: 'PATCH',
    path: '/v1/topics/:id',
    summary: 'Update a topic',
    description: 'Changes the fields given.',
    pathParams: idParam,
    body: updateTopic,
    ...outcome(
      {
        operationId: 'updateTopic',
        tag: 'Topics',
        permission: 'topics:write',
        hasBody: true,
        errors: ['not_found'],
      },
      { 200: topic },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/topics/:id',
    summary: 'Delete a topic',
    description:
      'Nobody can choose it any more. What people chose is forgotten in the background: 200,000 choices a minute; until then it counts towards the limit. 409 while campaigns about it are scheduled, sending or paused: cancel them first. Emits no events.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'deleteTopic',
        tag: 'Topics',
        permission: 'topics:write',
        liveKeyOnly: true,
        errors: ['not_found', 'conflict'],
      },
      { 204: c.noBody() },
    ),
  },
  listOfSubscriber: {
    method: 'GET',
    path: '/v1/subscribers/:id/topics',
    summary: 'List the topics of a subscriber',
    description: `All topics of the account, at most ${maxTopics}, and which of them the person gets. Somebody who unsubscribed from everything gets none, whatever stands here.`,
    pathParams: subscriberParam,
    ...outcome(
      { operationId: 'listSubscriberTopics', tag: 'Topics', permission: 'subscribers:read', errors: ['not_found'] },
      { 200: subscriberTopicList },
    ),
  },
  updateOfSubscriber: {
    method: 'PATCH',
    path: '/v1/subscribers/:id/topics',
    summary: 'Choose topics for a subscriber',
    description:
      'Changes the topics given. Emits `contact.updated` with `topics` for each audience when something really changed. To let somebody have a topic again that they left needs a live key.',
    pathParams: subscriberParam,
    body: updateSubscriberTopics,
    ...outcome(
      {
        operationId: 'updateSubscriberTopics',
        tag: 'Topics',
        permission: 'subscribers:write',
        hasBody: true,
        errors: ['not_found', 'rule_violation', 'topic_not_found'],
      },
      { 200: subscriberTopicList },
    ),
  },
})
