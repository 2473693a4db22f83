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

describe('between two specs', () => {
  test('that are alike there is nothing', () => {
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
      'POST /v1/emails, body.subject: maxLength is lower',
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
  ])('%s', (told, change) => {
    expect(breakingChanges(published, changed(change))).toContain(told)
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
