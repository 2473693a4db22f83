import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { actorTypes } from './audit-actions.ts'
import { boundedString, line, list, timeInput, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { mode } from './mode.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { type Grant, grants } from './permissions.ts'
import { outcome } from './route.ts'

const c = initContract()

/** The most keys of each mode that an account can have by the API, revoked ones too. */
export const maxKeys = 100

/** The most entries of `allowedAddresses`. */
export const maxAllowedAddresses = 20

const grant = z.enum(grants as readonly [Grant, ...Grant[]]).meta({
  id: 'Grant',
  description: 'A permission, or the name of a set of permissions.',
  example: 'sending_access',
})

const createdBy = z
  .object({
    type: z.enum(actorTypes).meta({ description: 'A key, a user of the dashboard, or the command line.' }),
    id: z.string().nullable().meta({ description: 'The key or the user; null: the command line.' }),
  })
  .meta({ id: 'KeyCreator', description: 'Who made a key.', example: { type: 'key', id: exampleId('apiKey') } })

const apiKeyFields = {
  id: idSchema('apiKey', 'Identifies the key. It is not the key itself.'),
  name: z.string().meta({ description: 'What people call it.' }),
  mode,
  permissions: z.array(z.string()).meta({ description: 'What it may do: permissions, and sets of permissions.' }),
  lastFour: z.string().meta({ description: 'The last four characters of the key.' }),
  createdAt: timestamp,
  createdBy,
  lastUsedAt: timestamp
    .nullable()
    .meta({ description: 'When it was last used, as of a minute ago at the latest; null: never.' }),
  lastUsedFrom: z
    .string()
    .nullable()
    .meta({ description: 'The IP address it was last used from; null: never used, or not known.' }),
  expiresAt: timestamp.nullable().meta({ description: 'From then on it is refused; null: it does not expire.' }),
  allowedAddresses: z
    .array(z.string())
    .meta({ description: 'The IP addresses and ranges it may be used from; empty: any.' }),
  revokedAt: timestamp.nullable().meta({ description: 'Since when it is refused; null: it is not revoked.' }),
}

const apiKeyExample = {
  id: exampleId('apiKey'),
  name: 'Web shop',
  mode: 'live' as const,
  permissions: ['sending_access'],
  lastFour: 'VpHj',
  createdAt: '2026-03-01T09:30:00.000Z',
  createdBy: { type: 'key' as const, id: exampleId('apiKey') },
  lastUsedAt: '2026-03-02T11:00:00.000Z',
  lastUsedFrom: '203.0.113.7',
  expiresAt: null,
  allowedAddresses: ['203.0.113.0/24'],
  revokedAt: null,
}

const apiKey = z
  .object(apiKeyFields)
  .meta({ id: 'ApiKey', description: 'A key of the API, without the key itself.', example: apiKeyExample })

const apiKeyWithSecret = z
  .object({
    ...apiKeyFields,
    key: z.string().meta({ description: 'The key itself. Shown here and never again: keep it.' }),
  })
  .meta({
    id: 'ApiKeyWithSecret',
    description: 'A new key, as answered when it is made.',
    example: { ...apiKeyExample, lastUsedAt: null, lastUsedFrom: null, key: `postern_live_${'x'.repeat(39)}VpHj` },
  })

const createApiKey = z
  .strictObject({
    name: line(200).min(1, 'must be at least 1 character').meta({ description: 'What people call it.' }),
    permissions: list(grant, { min: 1, max: grants.length, minFault: 'at least one permission is needed' }).meta({
      description: 'What it may do. Nothing that the caller may not do itself.',
    }),
    expiresAt: timeInput.nullable().optional().meta({
      description:
        'From when on it is refused; null: never. Default: never, or when the key expires that makes it. A key that expires makes none that expires later.',
    }),
    allowedAddresses: list(
      boundedString(49).regex(/^[0-9A-Fa-f:.]{2,45}(?:\/[0-9]{1,3})?$/, 'must be an IP address or a range of them'),
      { max: maxAllowedAddresses },
    )
      .optional()
      .meta({
        description:
          'The IP addresses (`203.0.113.7`, `2001:db8::1`) and ranges (`203.0.113.0/24`, `2001:db8::/32`) it may be used from; empty: any. Default: any, or those of the key that makes it. A key that has such makes none for others.',
      }),
  })
  .meta({
    id: 'CreateApiKey',
    description: 'A key to make.',
    example: { name: 'Web shop', permissions: ['sending_access'], allowedAddresses: ['203.0.113.0/24'] },
  })

const idParam = z.object({ id: idSchema('apiKey', 'The key, by its id.') })

export type ApiKey = z.infer<typeof apiKey>
export type ApiKeyWithSecret = z.infer<typeof apiKeyWithSecret>
export type CreateApiKey = z.infer<typeof createApiKey>

export const apiKeys = c.router({
  create: {
    method: 'POST',
    path: '/v1/api-keys',
    summary: 'Create an API key',
    description: `Makes a key of the mode of the caller. The answer carries the key itself, which is shown only now. 422 \`rule_violation\` for a permission that the caller does not have. An account can have ${maxKeys} keys of each mode, revoked ones too; one more is refused with 409 \`conflict\`.`,
    body: createApiKey,
    ...outcome(
      {
        operationId: 'createApiKey',
        tag: 'API keys',
        permission: 'api_keys:write',
        hasBody: true,
        idempotency: 'with-work',
        keptFor: 'caller',
        errors: ['conflict', 'rule_violation'],
      },
      { 201: apiKeyWithSecret },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/api-keys',
    summary: 'List API keys',
    description: 'Newest first, those of the mode of the caller, revoked and expired ones too.',
    query: z.strictObject(pageQuery),
    ...outcome(
      { operationId: 'listApiKeys', tag: 'API keys', permission: 'api_keys:read' },
      { 200: pageOf(apiKey, 'ApiKeyPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/api-keys/:id',
    summary: 'Get an API key',
    description: 'One key, without the key itself.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'getApiKey', tag: 'API keys', permission: 'api_keys:read', errors: ['not_found'] },
      { 200: apiKey },
    ),
  },
  revoke: {
    method: 'POST',
    path: '/v1/api-keys/:id/revoke',
    summary: 'Revoke an API key',
    description:
      'Has the key be refused from now on, in all processes, for good. It stays on the list. A key that was revoked before keeps its time.',
    pathParams: idParam,
    body: z.strictObject({}).optional(),
    ...outcome(
      {
        operationId: 'revokeApiKey',
        tag: 'API keys',
        permission: 'api_keys:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['not_found'],
      },
      { 200: apiKey },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/api-keys/:id',
    summary: 'Delete an API key',
    description: 'Has the key be refused from now on, and takes it off the list.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'deleteApiKey', tag: 'API keys', permission: 'api_keys:write', errors: ['not_found'] },
      { 204: c.noBody() },
    ),
  },
})
