import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect, test } from 'vitest'
import { eventTypeNames } from '../../contract/event-types.ts'
import { describeEventTypes } from '../../server/events/type-catalog.ts'

const ajv = new Ajv2020({ strict: true })
addFormats.default(ajv)

test('every event type is described', () => {
  expect(describeEventTypes().map(({ type }) => type)).toEqual(eventTypeNames)
})

test.each(describeEventTypes())('the schema of $type takes its example and refuses another type', (described) => {
  const { type, schema, example } = described
  const validate = ajv.compile(schema)
  expect(validate(example), ajv.errorsText(validate.errors)).toBe(true)
  expect(validate({ ...example, later: 'a field of a later version' })).toBe(true)
  expect(validate({ ...example, type: `${type}.other` })).toBe(false)
  expect(validate({ ...example, data: {} })).toBe(false)
})
