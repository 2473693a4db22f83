import { describe, expect, test } from 'vitest'
import { breakingChanges } from '../../openapi/breaking-changes.ts'
import published from '../../openapi/openapi.json' with { type: 'json' }

/** The published document with one thing in it another. */
function changed(change: (document: ReturnType<typeof copy>) => void): object {
  const document = copy()
  change(document)
  return document
}

// biome-ignore lint/suspicious/noExplicitAny: any place in it may be changed
function copy(): any {
  return structuredClone(published)
}

/** The component, and every reference to it, under another name. */
function rename(document: ReturnType<typeof copy>, name: string, other: string): void {
  const text = JSON.stringify(document).replaceAll(`#/components/schemas/${name}"`, `#/components/schemas/${other}"`)
  Object.assign(document, JSON.parse(text))
  document.components.schemas[other] = document.components.schemas[name]
  delete document.components.schemas[name]
}

describe('between two specs', () => {
  test('no change is found between two specs that are alike', () => {
    expect(breakingChanges(published, published)).toEqual([])
  })

  test.each<[string, (document: ReturnType<typeof copy>) => void]>([
    ['DELETE /v1/webhooks/{id}: is gone', ({ paths }) => delete paths['/v1/webhooks/{id}'].delete],
    [
      'GET /v1/emails, query tag: is gone',
      ({ paths }) => {
        const { get } = paths['/v1/emails']
        get.parameters = get.parameters.filter(({ name }: { name?: string }) => name !== 'tag')
      },
    ],
    [
      'GET /v1/emails, query tag: is required',
      ({ paths }) => {
        const { get } = paths['/v1/emails']
        get.parameters.find(({ name }: { name?: string }) => name === 'tag').required = true
      },
    ],
    ['POST /v1/emails, body.html: is required', ({ components }) => components.schemas.SendEmail.required.push('html')],
    ['POST /v1/emails, body.tags: is gone', ({ components }) => delete components.schemas.SendEmail.properties.tags],
    [
      'POST /v1/emails, body.subject: maxLength is lower (10)',
      ({ components }) => {
        components.schemas.SendEmail.properties.subject.maxLength = 10
      },
    ],
    [
      'POST /v1/emails, body.html: may not be null',
      ({ components }) => {
        components.schemas.SendEmail.properties.html = components.schemas.SendEmail.properties.html.anyOf[0]
      },
    ],
    [
      'PATCH /v1/webhooks/{id}, body.status: does not take disabled',
      ({ components }) => {
        components.schemas.UpdateWebhook.properties.status.enum = ['enabled']
      },
    ],
    [
      'POST /v1/emails, body.from: pattern is another',
      ({ components }) => {
        components.schemas.Mailbox.pattern = '^x$'
      },
    ],
    [
      'GET /v1/emails, 200.data[].subject: is gone',
      ({ components }) => delete components.schemas.Email.properties.subject,
    ],
    [
      'GET /v1/emails, 200.data[].subject: may be null',
      ({ components }) => {
        components.schemas.Email.properties.subject = { anyOf: [{ type: 'string' }, { type: 'null' }] }
      },
    ],
    [
      'GET /v1/emails, 200.data[].subject: may be missing',
      ({ components }) => {
        components.schemas.Email.required = components.schemas.Email.required.filter(
          (name: string) => name !== 'subject',
        )
      },
    ],
    ['POST /v1/emails, 202: is gone', ({ paths }) => delete paths['/v1/emails'].post.responses['202']],
    [
      'GET /v1/emails, 200: lacks X-RateLimit-Reset',
      ({ paths }) => {
        delete paths['/v1/emails'].get.responses['200'].headers['X-RateLimit-Reset']
      },
    ],
    ['webhook email.sent: is gone', (document) => delete document.webhooks],
    [
      'webhook email.sent, header webhook-id: may be missing',
      ({ webhooks }) => {
        const { parameters } = webhooks['email.sent'].post
        parameters.find(({ name }: { name: string }) => name === 'webhook-id').required = false
      },
    ],
    ['webhook email.sent, 410: is gone', ({ webhooks }) => delete webhooks['email.sent'].post.responses['410']],
    [
      'webhook email.sent, body.data.subject: is gone',
      ({ components }) => delete components.schemas.EmailSentEventData.properties.subject,
    ],
    [
      'GET /v1/events/{id}, 200: is never RecordedEmailBouncedEvent',
      ({ components }) => {
        components.schemas.Event.oneOf = components.schemas.Event.oneOf.slice(0, 1)
      },
    ],
    [
      'GET /v1/events/{id}, 200: may be string',
      ({ components }) => components.schemas.Event.oneOf.push({ type: 'string' }),
    ],
    [
      'GET /v1/events/{id}, 200(RecordedEmailSentEvent): is Sent instead of RecordedEmailSentEvent',
      (document) => rename(document, 'RecordedEmailSentEvent', 'Sent'),
    ],
    ['schema SendEmail: is gone', (document) => rename(document, 'SendEmail', 'NewEmail')],
    [
      'POST /v1/emails, body: is NewEmail instead of SendEmail',
      (document) => rename(document, 'SendEmail', 'NewEmail'),
    ],
    [
      'POST /v1/emails, body.to: does not take array',
      ({ components }) => components.schemas.SendEmail.properties.to.oneOf.pop(),
    ],
    [
      'POST /v1/emails, body.to(array): maxItems is lower (1)',
      ({ components }) => {
        const { oneOf } = components.schemas.SendEmail.properties.to
        oneOf[1].maxItems = 1
        oneOf.reverse()
      },
    ],
    [
      'POST /v1/webhooks, body.metadata{}: maxLength is lower (10)',
      ({ components }) => {
        components.schemas.CreateWebhook.properties.metadata.additionalProperties.maxLength = 10
      },
    ],
    [
      'POST /v1/webhooks, body.metadata{name}: minLength is higher (2)',
      ({ components }) => {
        components.schemas.CreateWebhook.properties.metadata.propertyNames.minLength = 2
      },
    ],
    [
      'GET /v1/emails/{id}, 200.metadata{}: may be of any type',
      ({ components }) => {
        components.schemas.EmailDetails.properties.metadata.additionalProperties = {}
      },
    ],
    [
      'GET /v1/emails, query limit: default is another',
      ({ paths }) => {
        const { get } = paths['/v1/emails']
        get.parameters.find(({ name }: { name?: string }) => name === 'limit').schema.default = 10
      },
    ],
    [
      'webhook email.sent, body.timestamp: format is another',
      ({ components }) => delete components.schemas.Timestamp.format,
    ],
  ])('a change between two specs is told or not: %s', (told, change) => {
    expect(breakingChanges(published, changed(change))).toContain(told)
  })

  const ofEvents = Object.keys(published.components.schemas).filter((name) => /Event(?:Data)?$/.test(name))

  test.each(ofEvents)('%s without its fields is told of', (name) => {
    const emptied = changed(({ components }) => {
      Object.assign(components.schemas[name], { properties: {}, required: [] })
    })
    expect(breakingChanges(published, emptied)).not.toEqual([])
  })

  test('the order of the members of a union breaks nobody', () => {
    const reordered = changed(({ components }) => {
      components.schemas.SendEmail.properties.to.oneOf.reverse()
      components.schemas.Event.oneOf.reverse()
    })
    expect(breakingChanges(published, reordered)).toEqual([])
  })

  test('a new type of event breaks nobody', () => {
    const more = changed(({ components: { schemas } }) => {
      schemas.RecordedNewEvent = structuredClone(schemas.RecordedEmailSentEvent)
      schemas.RecordedNewEvent.properties.type.const = 'email.new'
      schemas.Event.oneOf.push({ $ref: '#/components/schemas/RecordedNewEvent' })
    })
    expect(breakingChanges(published, more)).toEqual([])
  })

  test('what is added breaks nobody', () => {
    const more = changed(({ paths, components }) => {
      paths['/v1/new'] = { get: { operationId: 'new', responses: {} } }
      paths['/v1/emails'].get.parameters.push({ name: 'more', in: 'query', schema: { type: 'string' } })
      components.schemas.SendEmail.properties.more = { type: 'string' }
      components.schemas.Email.properties.more = { type: 'string' }
      components.schemas.Email.required.push('more')
      components.schemas.EmailStatus.enum.push('paused')
      components.schemas.SendEmail.properties.subject.maxLength = 2000
    })
    expect(breakingChanges(published, more).filter((change) => !change.includes('query status'))).toEqual([])
  })
})
