import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect, test } from 'vitest'
import { publishedDocument } from '../../openapi/published.ts'
import { readDomainName } from '../../server/domains/name.ts'
import { mailboxFormat } from '../support/published-spec.ts'
import { objectsOf, resolve } from './walk.ts'

const document = publishedDocument()
const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addFormat('idn-hostname', (text: string) => readDomainName(text).fault === null)
ajv.addFormat('mailbox', mailboxFormat)
ajv.addSchema(document, 'document')

/** Returns the faults of `example` by the schema at `pointer`; an empty list when there are none. */
function faults(pointer: string, example: unknown): string[] {
  const validate = ajv.compile({ $ref: `document#${pointer}` })
  if (validate(example)) return []
  return (validate.errors ?? []).map((error) => `${pointer}: ${error.instancePath} ${error.message}`)
}

test('every example of a schema is valid by that schema', () => {
  const schemas = [...objectsOf(document)].filter(({ value }) => Array.isArray(value.examples))
  expect(schemas.length).toBeGreaterThan(50)
  const found = schemas.flatMap(({ pointer, value }) =>
    (value.examples as unknown[]).flatMap((example) => faults(pointer, example)),
  )
  expect(found).toEqual([])
})

test('every example of a body is valid by the schema of the body', () => {
  const bodies = [...objectsOf(document)].filter(({ value }) => 'schema' in value && 'examples' in value)
  expect(bodies.length).toBeGreaterThan(10)
  const found = bodies.flatMap(({ pointer, value }) =>
    Object.values(value.examples as Record<string, { $ref: string }>).flatMap(({ $ref }) => {
      const example = resolve(document, $ref) as { value: unknown }
      return faults(`${pointer}/schema`, example.value)
    }),
  )
  expect(found).toEqual([])
})

test('an example that is not valid would be found', () => {
  expect(faults('/components/schemas/Webhook', { id: 'wh_1' })).not.toEqual([])
})

test('every schema of a body has an example', () => {
  // An event type is described by fields named `type` and `example`: Spectral takes an example of it for a schema.
  const without = ['#/components/schemas/EventTypeList']
  const media = [...objectsOf(document)].filter(({ pointer }) => pointer.endsWith('/application~1json'))
  const bare = media.filter(({ value }) => {
    if ('examples' in value) return false
    const { $ref, ...inline } = value.schema as { $ref?: string; examples?: unknown[]; properties?: object }
    if ($ref !== undefined && without.includes($ref)) return false
    const schema = $ref === undefined ? inline : (resolve(document, $ref) as typeof inline)
    return schema.examples === undefined && Object.keys(schema.properties ?? {}).length > 0
  })
  expect(bare.map(({ pointer }) => pointer)).toEqual([])
})
