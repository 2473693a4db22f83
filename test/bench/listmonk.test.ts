import { expect, test } from 'vitest'
import { personalContent } from '../../scripts/bench/campaigns.ts'
import { listmonkEnvironment, toGoTemplate } from '../../scripts/bench/listmonk.ts'

test('a template for Listmonk has the same text and the same variables', () => {
  expect(
    toGoTemplate('Dear {{ contact.firstName | default: "reader" }} ({{ contact.email }}): {{unsubscribeUrl}}'),
  ).toBe('Dear {{ .Subscriber.FirstName | default "reader" }} ({{ .Subscriber.Email }}): {{ UnsubscribeURL }}')
})

test('every part of the message of the benchmark has a template for Listmonk', () => {
  const { subject, html, text } = personalContent
  const firstName = '.Subscriber.FirstName | default'
  expect(toGoTemplate(subject)).toContain(firstName)
  for (const part of [html, text]) {
    expect(toGoTemplate(part)).toContain(firstName)
    expect(toGoTemplate(part)).toContain('{{ UnsubscribeURL }}')
    expect(toGoTemplate(part)).not.toContain('contact.')
  }
})

test('a template with a variable or a filter that Listmonk lacks is refused', () => {
  expect(() => toGoTemplate('{{ contact.city }}')).toThrow('{{ contact.city }}')
  expect(() => toGoTemplate('{{ contact.email | upcase }}')).toThrow('{{ contact.email | upcase }}')
})

test('Listmonk gets the database of a connection string, and an address of this machine', () => {
  expect(listmonkEnvironment('postgres://a%40b:p%2Fw@127.0.0.1:5433/listmonk')).toMatchObject({
    LISTMONK_app__address: '127.0.0.1:0',
    LISTMONK_db__host: '127.0.0.1',
    LISTMONK_db__port: '5433',
    LISTMONK_db__user: 'a@b',
    LISTMONK_db__password: 'p/w',
    LISTMONK_db__database: 'listmonk',
  })
})
