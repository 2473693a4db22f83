import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { contactConflict } from './contacts.ts'
import { record, text, timestamp } from './fields.ts'
import { exampleId, idSchema, idsInText } from './ids.ts'
import { type DelimiterName, importDelimiters, importEncodings, importFileTypes, importLimits } from './import-files.ts'
import { mode } from './mode.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'
import { subscriptionStatus } from './subscribers.ts'

const c = initContract()

const delimiterNames = Object.keys(importDelimiters) as [DelimiterName, ...DelimiterName[]]

const delimiter = z.enum(delimiterNames)
const encoding = z.enum(importEncodings)

const columnName = text(importLimits.columnCharacters)

const columnMapping = record(text(80), {
  maxEntries: importLimits.columns,
  fault: `must be at most ${importLimits.columns} columns`,
  maxNameCharacters: importLimits.columnCharacters,
  nameFault: `must have a name of at most ${importLimits.columnCharacters} characters`,
  name: columnName.min(1).regex(/^[^[\]]*$/, 'must have a name without square brackets'),
})

const topics = idsInText('topic', { max: importLimits.topics }).meta({
  description: `Topics that the people are subscribed to: at most ${importLimits.topics} identifiers, separated by commas. It holds for new contacts, and with \`conflict\` \`update\` also for those who were there. What a person chose about a topic before stays: who left it is not subscribed again. Nobody who is unsubscribed is subscribed to a topic.`,
})

const createQuery = z.strictObject({
  audienceId: idSchema('audience', 'The audience that the people are put into.'),
  conflict: contactConflict.optional(),
  status: subscriptionStatus.optional().meta({
    description:
      'Of the new contacts. Default: `active`, also in an audience with `doubleOptIn`: the file says who confirmed elsewhere. `pending`: each gets an email to confirm, in an audience with `doubleOptIn`. With `unsubscribed` and `conflict` `update` those who are on the list are unsubscribed from it too. A person who unsubscribed stays so, whatever it is.',
  }),
  topics: topics.optional(),
  events: z.enum(['true', 'false']).optional().meta({
    description:
      'Whether the import causes `subscriber.added`, `contact.created` and `contact.updated`, as adding the people one by one does. Default: `true`.',
  }),
  delimiter: delimiter.optional().meta({ description: 'What separates cells. Default: found in the head.' }),
  encoding: encoding.optional().meta({
    description:
      'Default: by the byte order mark; without one UTF-8, or UTF-16 where every other byte of the beginning is zero; and windows-1252 for a file that is no UTF-8.',
  }),
  fileName: text(200).optional().meta({ description: 'For people, to tell imports apart.' }),
  columns: columnMapping.optional().meta({
    description:
      'What the columns of the file are, by their name in its head: `columns[E-Mail]=email`. A value is `email`, `firstName`, `lastName`, `name` (first and last name in one), `status`, `attributes` (properties as JSON), `properties.` with the key of a declared property, or `ignore`. Columns that are not named here are known by usual names, those of Mailchimp and Listmonk among them, or by the key of a property; all others are ignored.',
  }),
})

const count = z.int().min(0)

const columnsRead = z.array(z.object({ column: z.string(), field: z.string() }))

const importedFile = z
  .object({
    name: z.string().meta({ description: 'With its folders in the ZIP.' }),
    readAs: z.enum(['contacts', 'unsubscribe', 'hard_bounce', 'ignored']).meta({
      id: 'ImportedFileKind',
      description:
        '`contacts`: as the import says. `unsubscribe`, `hard_bounce`: its people go to the suppression list alone. `ignored`: it is not read.',
    }),
    ignoredBecause: z.string().nullable(),
    columns: columnsRead.meta({ description: 'Its columns in order, and what each was taken for.' }),
  })
  .meta({
    id: 'ImportedFile',
    description: 'A file of a ZIP.',
    example: {
      name: 'unsubscribed_email_audience_export_8a1f.csv',
      readAs: 'unsubscribe',
      ignoredBecause: null,
      columns: [{ column: 'Email Address', field: 'email' }],
    },
  })

const importSchema = z
  .object({
    id: idSchema('import', 'Identifies the import.'),
    mode,
    audienceId: idSchema('audience', 'The audience that the people are put into.'),
    fileName: z.string().nullable(),
    status: z.enum(['uploading', 'waiting', 'running', 'completed', 'failed', 'canceled']).meta({
      id: 'ImportStatus',
      description:
        '`uploading`: the file arrives. `waiting`: for its turn. `running`. `completed`: every row was read. `failed`: it could not go on; `failureReason` says why, and the rows before are done. `canceled`: the rows before are done.',
    }),
    conflict: contactConflict,
    contactStatus: subscriptionStatus,
    topics: z
      .array(idSchema('topic', 'The topic.'))
      .meta({ description: 'Topics that its people are subscribed to. One that is deleted meanwhile is passed over.' }),
    events: z.boolean(),
    delimiter,
    encoding,
    columns: columnsRead.meta({
      description:
        'The columns of the file in order, and what each was taken for. Of a ZIP, like `delimiter` and `encoding`: those of its first file of contacts.',
    }),
    files: z.array(importedFile).meta({
      description:
        'Of a ZIP: its files in the order in which they are read, then those that are not. Empty for a CSV file.',
    }),
    bytes: count.meta({ description: 'Size of the file in UTF-8. Of a ZIP: of all files that are read.' }),
    bytesRead: count.meta({ description: 'Bytes that are done.' }),
    rowsRead: count.meta({ description: 'Rows that are done, without the head: the sum of the next five.' }),
    created: count.meta({ description: 'New contacts.' }),
    updated: count.meta({ description: 'Contacts that were there, of people who changed.' }),
    skipped: count.meta({ description: 'Contacts that were there, and stayed as they are.' }),
    suppressed: count.meta({
      description:
        'Rows of people who unsubscribed or whose address bounced: put on the suppression list alone. Of a ZIP also people of its other files who are on that list.',
    }),
    failed: count.meta({ description: 'Rows that were refused: see `GET /v1/imports/:id/failed-rows`.' }),
    failureReason: z.string().nullable(),
    createdAt: timestamp,
    startedAt: timestamp.nullable(),
    endedAt: timestamp.nullable(),
  })
  .meta({
    id: 'Import',
    description: 'A file of contacts, and how far it is.',
    example: {
      id: exampleId('import'),
      mode: 'live',
      audienceId: exampleId('audience'),
      fileName: 'customers.csv',
      status: 'running',
      conflict: 'update',
      contactStatus: 'active',
      topics: [exampleId('topic')],
      events: true,
      delimiter: 'comma',
      encoding: 'utf-8',
      columns: [
        { column: 'Email Address', field: 'email' },
        { column: 'Plan', field: 'properties.plan' },
      ],
      files: [],
      bytes: 52_000_000,
      bytesRead: 10_400_000,
      rowsRead: 200_000,
      created: 198_000,
      updated: 1_500,
      skipped: 300,
      suppressed: 0,
      failed: 200,
      failureReason: null,
      createdAt: '2026-03-01T09:30:00.000Z',
      startedAt: '2026-03-01T09:30:20.000Z',
      endedAt: null,
    },
  })

const idParam = z.object({ id: idSchema('import', 'The import.') })

export type Import = z.infer<typeof importSchema>
export type CreateImport = z.infer<typeof createQuery>

export const imports = c.router({
  create: {
    method: 'POST',
    path: '/v1/imports',
    summary: 'Import contacts from CSV or a ZIP',
    description: `The body is the file itself, up to 1 GiB: CSV with a head, sent as \`text/csv\`, or a ZIP of such files, sent as \`application/zip\`. It may also arrive in pieces (\`Transfer-Encoding: chunked\`). The first bytes tell which of the two it is. The files of a ZIP may have 1 GiB in all. The exports of Mailchimp and Listmonk are known by the names and the columns of their files; a person of a file of those who unsubscribed or bounced becomes no contact by another file. The answer comes when the file is stored, and a ZIP unpacked; its rows are read in the background. Rows are separated by any line break. A person is put into the audience once, however often the address is there. Rows with a \`status\` of unsubscribed or bounced people, and files of Mailchimp with such people, go to the suppression list alone, which needs a live key. An account can have ${importLimits.unfinished} imports that have not ended; 409 for one more. Sending the same file again is harmless.`,
    query: createQuery,
    body: c.noBody(),
    ...outcome(
      {
        operationId: 'createImport',
        tag: 'Imports',
        permission: 'contacts:write',
        takesFile: importFileTypes,
        errors: [
          'audience_not_found',
          'topic_not_found',
          'conflict',
          'rule_violation',
          'payload_too_large',
          'unsupported_media_type',
        ],
      },
      { 202: importSchema },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/imports',
    summary: 'List imports',
    description: 'Newest first, those of the mode of the key.',
    query: z.strictObject(pageQuery),
    ...outcome(
      { operationId: 'listImports', tag: 'Imports', permission: 'contacts:read' },
      { 200: pageOf(importSchema, 'ImportPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/imports/:id',
    summary: 'Get an import',
    description: 'One import, with how far it is.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'getImport', tag: 'Imports', permission: 'contacts:read', errors: ['not_found'] },
      { 200: importSchema },
    ),
  },
  cancel: {
    method: 'POST',
    path: '/v1/imports/:id/cancel',
    summary: 'Cancel an import',
    description:
      'No row is read from then on; the rows before stay. An import that has ended stays as it is, and is returned.',
    pathParams: idParam,
    body: z.strictObject({}).optional(),
    ...outcome(
      {
        operationId: 'cancelImport',
        tag: 'Imports',
        permission: 'contacts:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['not_found'],
      },
      { 200: importSchema },
    ),
  },
  failedRows: {
    method: 'GET',
    path: '/v1/imports/:id/failed-rows',
    summary: 'Get the failed rows of an import',
    description: `CSV in UTF-8: the columns of the file, then \`import_row\` (1 is the first below the head) and \`import_reason\`. Of a ZIP: the columns of all its files, with a status where a whole file has one, then \`import_file\`, \`import_row\` (in that file) and \`import_reason\`. The first ${importLimits.failedRows} failed rows; cells are cut so that a row has ${importLimits.failedRowCharacters} characters. A cell that a spreadsheet could take for a formula begins with an apostrophe.`,
    pathParams: idParam,
    ...outcome(
      { operationId: 'getImportFailedRows', tag: 'Imports', permission: 'contacts:read', errors: ['not_found'] },
      {
        200: c.otherResponse({
          contentType: 'text/csv',
          body: z.string().meta({
            description: 'CSV with a head.',
            example: 'email,import_row,import_reason\r\nada@,17,email must be an email address\r\n',
          }),
        }),
      },
    ),
  },
})
