import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { SubscriberTopicService } from '../../subscribers/topics.ts'
import type { TopicService } from '../../topics/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function topicRoutes(topics: TopicService, ofSubscribers: SubscriberTopicService, endpoint: Endpoint) {
  return initServer().router(contract.topics, {
    create: endpoint(async ({ body }, { handle, scope }) => ({
      status: 201,
      body: await topics.create(handle, scope.accountId, body),
    })),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await topics.list(handle, scope.accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await topics.get(handle, scope.accountId, params.id),
    })),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await topics.update(handle, scope.accountId, params.id, body),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await topics.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
    listOfSubscriber: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: { data: await ofSubscribers.list(handle, scope.accountId, params.id) },
    })),
    updateOfSubscriber: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: { data: await ofSubscribers.update(handle, scope, params.id, body.topics) },
    })),
  })
}
