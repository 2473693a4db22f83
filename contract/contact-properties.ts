import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { boundedString, record, text, timestamp } from './fields.ts'
import { outcome } from './route.ts'

const c = initContract()

/** Limits of the properties of an account, and of their values for a person. */
export const propertyLimits = {
  /** Properties of an account. */
  properties: 100,
  keyCharacters: 50,
  /** Characters of a value of type `string`. */
  valueCharacters: 500,
  /** All values of one person, as JSON in UTF-8. Bytes. */
  bytes: 16_384,
} as const

export const propertyTypes = ['string', 'number', 'boolean', 'date'] as const
export type PropertyType = (typeof propertyTypes)[number]

const keyFault = 'must begin with a small letter, and have letters of a to z, digits and _ only: 50 characters at most'

export const propertyKey = boundedString(propertyLimits.keyCharacters, { fault: keyFault, isPublished: false })
  .regex(/^[a-z][a-zA-Z0-9_]{0,49}$/, keyFault)
  .meta({ description: 'Its name in `properties`, templates and conditions.', example: 'plan' })

const propertyType = z.enum(propertyTypes).meta({
  id: 'PropertyType',
  description: 'What its values are. `date`: text such as `2026-03-01`, from the year 1 to 9999.',
})

const shownValue = z
  .union([z.string(), z.number(), z.boolean()])
  .meta({ id: 'PropertyValue', description: 'A value of a property: text, a number, or true or false.' })

const givenValue = z
  .union([text(propertyLimits.valueCharacters), z.number(), z.boolean(), z.null()])
  .meta({ id: 'PropertyInput', description: 'A value of the type of the property. Null: no value.' })

/** The values of a person in a request. */
export const givenProperties = record(givenValue, {
  maxEntries: propertyLimits.properties,
  fault: `must be at most ${propertyLimits.properties} properties`,
  maxNameCharacters: propertyLimits.keyCharacters,
  nameFault: `must be the key of a property, of at most ${propertyLimits.keyCharacters} characters`,
}).meta({
  description: `Values of the properties that the account has declared, by key. Null takes a value away; a property that is not given keeps its value. At most ${propertyLimits.bytes} bytes for one person, as JSON.`,
  // No example: the account has to declare it first.
})

/** The values of a person as they are shown. */
export const shownProperties = z
  .record(z.string(), shownValue)
  .meta({ description: 'Values of the declared properties, by key. One that has no value is absent.' })

const fallback = givenValue.optional()

const propertyExample = {
  key: 'plan',
  type: 'string',
  fallback: 'free',
  createdAt: '2026-03-01T09:30:00.000Z',
  updatedAt: '2026-03-01T09:30:00.000Z',
}

const contactProperty = z
  .object({
    key: z.string(),
    type: propertyType,
    fallback: shownValue.nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({
    id: 'ContactProperty',
    description:
      'Something that an account keeps of people. `fallback` stands in messages for people who have no value; it is no value of theirs.',
    example: propertyExample,
  })

const createContactProperty = z.strictObject({ key: propertyKey, type: propertyType, fallback }).meta({
  id: 'CreateContactProperty',
  description: 'The property to declare.',
  example: { key: 'plan', type: 'string', fallback: 'free' },
})

const updateContactProperty = z.strictObject({ fallback }).meta({
  id: 'UpdateContactProperty',
  description: 'The fields to change. Key and type cannot change.',
  example: { fallback: 'free' },
})

const list = z.object({ data: z.array(contactProperty) }).meta({
  id: 'ContactPropertyList',
  description: 'All properties of the account, by key.',
  example: { data: [propertyExample] },
})

const keyParam = z.object({ key: propertyKey })

export type ContactProperty = z.infer<typeof contactProperty>
export type CreateContactProperty = z.infer<typeof createContactProperty>
export type UpdateContactProperty = z.infer<typeof updateContactProperty>
export type GivenProperties = z.infer<typeof givenProperties>

export const contactProperties = c.router({
  create: {
    method: 'POST',
    path: '/v1/contact-properties',
    summary: 'Declare a contact property',
    description: `People can have a value of it from then on. 409 when the key is there already, when its values of before are still being taken away, and when the account has ${propertyLimits.properties} properties.`,
    body: createContactProperty,
    ...outcome(
      {
        operationId: 'createContactProperty',
        tag: 'Contact properties',
        permission: 'contacts:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['conflict', 'rule_violation'],
      },
      { 201: contactProperty },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/contact-properties',
    summary: 'List contact properties',
    description: `All of them, by key: at most ${propertyLimits.properties}.`,
    ...outcome(
      { operationId: 'listContactProperties', tag: 'Contact properties', permission: 'contacts:read' },
      { 200: list },
    ),
  },
  update: {
    method: 'PATCH',
    path: '/v1/contact-properties/:key',
    summary: 'Update a contact property',
    description: 'Changes the fallback.',
    pathParams: keyParam,
    body: updateContactProperty,
    ...outcome(
      {
        operationId: 'updateContactProperty',
        tag: 'Contact properties',
        permission: 'contacts:write',
        hasBody: true,
        errors: ['not_found', 'rule_violation'],
      },
      { 200: contactProperty },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/contact-properties/:key',
    summary: 'Delete a contact property',
    description:
      'No response, message or condition has it from then on. The values of people are taken away in the background: 200,000 people a minute. Until that is done, the key cannot be declared again. Emits no events.',
    pathParams: keyParam,
    ...outcome(
      {
        operationId: 'deleteContactProperty',
        tag: 'Contact properties',
        permission: 'contacts:write',
        errors: ['not_found'],
      },
      { 204: c.noBody() },
    ),
  },
})
