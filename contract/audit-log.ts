import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { type AuditAction, actorTypes, auditActions, auditTargets } from './audit-actions.ts'
import { timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery, timeFilters } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

/** How long entries are kept. Days. */
export const auditLogDays = 400

const actions = Object.keys(auditActions) as [AuditAction, ...AuditAction[]]

const meanings = Object.entries(auditActions).map(([action, meaning]) => `\`${action}\`: ${meaning}`)

const auditEntry = z
  .object({
    id: idSchema('auditEntry', 'Identifies the entry.'),
    at: timestamp.meta({ description: 'When it was done.' }),
    actor: z.object({
      type: z
        .enum(actorTypes)
        .meta({ description: 'A key, a user of the dashboard, a customer in the portal, or the command line.' }),
      id: z
        .string()
        .nullable()
        .meta({ description: 'The key, the user or the portal session; null: the command line.' }),
      name: z.string().meta({ description: 'The name at that time; in the portal, the customer.' }),
    }),
    action: z.enum(actions).meta({ description: `What was done. New ones may be added. ${meanings.join(' ')}` }),
    target: z.object({
      type: z.enum(auditTargets).meta({ description: 'What it was done to. New ones may be added.' }),
      id: z.string().meta({ description: 'Of a contact the subscriber, of a contact property its key.' }),
      name: z.string().nullable().meta({
        description: 'The name at that time; null: it had none, or is a person: no address is kept here.',
      }),
    }),
    ipAddress: z.string().nullable().meta({ description: 'Where the request came from; null: the command line.' }),
    details: z
      .record(z.string(), z.string())
      .meta({ description: 'More about it, by name, such as the `mode` of a key. New names may be added.' }),
  })
  .meta({
    id: 'AuditEntry',
    description: 'Who did what, when and from where. Entries never change.',
    example: {
      id: exampleId('auditEntry'),
      at: '2026-03-01T09:30:00.000Z',
      actor: { type: 'key', id: exampleId('apiKey'), name: 'Deployments' },
      action: 'api_key.created',
      target: { type: 'api_key', id: exampleId('apiKey'), name: 'Web shop' },
      ipAddress: '203.0.113.7',
      details: { mode: 'live', permissions: 'sending_access' },
    },
  })

const listQuery = z.strictObject({ ...pageQuery, ...timeFilters })

export type AuditEntry = z.infer<typeof auditEntry>
export type AuditLogQuery = z.infer<typeof listQuery>

export const auditLog = c.router({
  list: {
    method: 'GET',
    path: '/v1/audit-log',
    summary: 'List the audit log',
    description: `Newest first, of both modes: who changed keys, members, webhooks and domains, who sent, paused or canceled campaigns, who imported contacts, published templates or lifted suppressions, and who deleted what. Entries are kept for ${auditLogDays} days.`,
    query: listQuery,
    ...outcome(
      { operationId: 'listAuditLog', tag: 'Audit log', permission: 'audit_log:read', liveKeyOnly: true },
      { 200: pageOf(auditEntry, 'AuditEntryPage') },
    ),
  },
})
