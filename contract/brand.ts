import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { boundedString, line, text } from './fields.ts'
import { outcome } from './route.ts'

const c = initContract()

const fields = {
  name: line(100).min(1).nullable().meta({ description: 'Who writes, as people know them. Null: it is not said.' }),
  accentColor: boundedString(7)
    .regex(/^#[0-9a-fA-F]{6}$/, 'must look like "#1a73e8"')
    .nullable()
    .meta({
      description:
        'The color of buttons, as `#rrggbb`. Their text is black or white, whichever is easier to read on it. Null: a dark gray.',
    }),
  text: text(500).min(1).nullable().meta({ description: 'A text above the preferences. Null: there is none.' }),
}

const example = { name: 'Acme', accentColor: '#1a73e8', text: 'Choose what we may write to you about.' }

const brand = z
  .object(fields)
  .meta({ id: 'Brand', description: 'How pages for your readers look: those behind the link to unsubscribe.', example })

const updateBrand = z
  .strictObject({
    name: fields.name.optional(),
    accentColor: fields.accentColor.optional(),
    text: fields.text.optional(),
  })
  .meta({ id: 'UpdateBrand', description: 'The fields to change.', example: { accentColor: '#1a73e8' } })

export type Brand = z.infer<typeof brand>
export type UpdateBrand = z.infer<typeof updateBrand>

export const brands = c.router({
  get: {
    method: 'GET',
    path: '/v1/account/brand',
    summary: 'Get the brand',
    description: 'How pages for your readers look: those behind the link to unsubscribe.',
    ...outcome({ operationId: 'getBrand', tag: 'Account', permission: 'topics:read' }, { 200: brand }),
  },
  update: {
    method: 'PATCH',
    path: '/v1/account/brand',
    summary: 'Update the brand',
    description: 'Changes the fields given; null takes one away.',
    body: updateBrand,
    ...outcome(
      { operationId: 'updateBrand', tag: 'Account', permission: 'topics:write', liveKeyOnly: true, hasBody: true },
      { 200: brand },
    ),
  },
})
