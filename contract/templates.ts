import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { boundedString, line, list, text, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'
import { mjmlSource, source } from './sources.ts'
import { fallbackValue, templateLimits, templateVariables } from './template-variables.ts'

const c = initContract()

/** The fields of a template that may be long. */
const longFields = {
  html: templateLimits.sourceLength,
  mjml: templateLimits.sourceLength,
  text: templateLimits.sourceLength,
} as const

const name = text(200).min(1).meta({ description: 'What people call it.', example: 'Welcome' })
const subject = line(templateLimits.subjectCharacters)
  .min(1)
  .meta({ description: 'The subject. Liquid.', example: 'Welcome, {{ firstName }}' })
const preheader = line(templateLimits.preheaderCharacters)
  .nullable()
  .meta({ description: 'What mail programs show beside the subject. Liquid.' })
const html = source('The message as HTML; values are escaped. A change of it takes the place of MJML.')
const plainText = source('The message as plain text. Null: it is made from the HTML.')

const variableTypes = ['string', 'number', 'boolean', 'date', 'list', 'object'] as const

const variable = z
  .strictObject({
    name: boundedString(50)
      .regex(/^[a-z][a-zA-Z0-9_]{0,49}$/, 'must begin with a lower-case letter, and have letters, digits and _ only')
      .meta({ description: 'The name in Liquid.', example: 'firstName' }),
    type: z.enum(variableTypes).meta({ description: 'What its value is. `date`: a text such as `2026-03-01`.' }),
    required: z.boolean().optional().meta({ description: 'Whether an email must give it. Default: no.' }),
    fallback: fallbackValue
      .nullable()
      .optional()
      .meta({ description: 'Its value where none is given. Not for lists and objects.' }),
  })
  .meta({
    id: 'TemplateVariable',
    description: 'A variable of a template.',
    example: { name: 'firstName', type: 'string', fallback: 'there' },
  })

const variables = list(variable, {
  max: templateLimits.variables,
  fault: `must be at most ${templateLimits.variables} variables`,
}).meta({
  description: `Its variables, at most ${templateLimits.variables}. Others may be given with an email too; they are not checked.`,
})

const shownVariable = z.object({
  name: z.string(),
  type: z.enum(variableTypes),
  required: z.boolean(),
  fallback: z.union([z.string(), z.number(), z.boolean()]).nullable(),
})

const summaryFields = {
  id: idSchema('template', 'Identifies the template.'),
  name: z.string(),
  subject: z.string(),
  publishedVersion: z.int().min(1).nullable().meta({ description: 'The version that emails get; null: none yet.' }),
  publishedAt: timestamp.nullable(),
  hasUnpublishedChanges: z.boolean().meta({ description: 'Whether the draft differs from the published version.' }),
  createdAt: timestamp,
  updatedAt: timestamp,
}
const summaryExample = {
  id: exampleId('template'),
  name: 'Welcome',
  subject: 'Welcome, {{ firstName }}',
  publishedVersion: 1,
  publishedAt: '2026-03-01T09:30:00.000Z',
  hasUnpublishedChanges: false,
  createdAt: '2026-03-01T09:30:00.000Z',
  updatedAt: '2026-03-01T09:30:00.000Z',
}

const summary = z
  .object(summaryFields)
  .meta({ id: 'TemplateSummary', description: 'A template, without its content.', example: summaryExample })

const template = z
  .object({
    ...summaryFields,
    preheader: z.string().nullable(),
    html: z
      .string()
      .nullable()
      .meta({ description: 'As it was written, or as the MJML was compiled. Null where the MJML has a fault.' }),
    mjml: z.string().nullable().meta({ description: 'What the HTML was compiled from. Null: the HTML was written.' }),
    text: z.string().nullable(),
    variables: z.array(shownVariable),
  })
  .meta({
    id: 'Template',
    description: 'A template with its draft, which is what can be changed.',
    example: {
      ...summaryExample,
      preheader: null,
      html: '<p>Hello {{ firstName }}</p>',
      mjml: null,
      text: null,
      variables: [{ name: 'firstName', type: 'string', required: false, fallback: 'there' }],
    },
  })

const templateVersion = z
  .object({
    version: z.int().min(1).meta({ description: 'Counts from 1.' }),
    subject: z.string(),
    publishedAt: timestamp,
  })
  .meta({
    id: 'TemplateVersion',
    description: 'What was published once. It never changes.',
    example: { version: 1, subject: 'Welcome, {{ firstName }}', publishedAt: '2026-03-01T09:30:00.000Z' },
  })

const versionList = z.object({ data: z.array(templateVersion) }).meta({
  id: 'TemplateVersionList',
  description: 'The versions of a template.',
  example: {
    data: [{ version: 1, subject: 'Welcome, {{ firstName }}', publishedAt: '2026-03-01T09:30:00.000Z' }],
  },
})

const createTemplate = z
  .strictObject({
    name,
    subject,
    preheader: preheader.optional(),
    html: html.optional(),
    mjml: mjmlSource.optional(),
    text: plainText.optional(),
    variables: variables.optional(),
  })
  .meta({
    id: 'CreateTemplate',
    description: 'The template to add.',
    example: {
      name: 'Welcome',
      subject: 'Welcome, {{ firstName }}',
      html: '<p>Hello {{ firstName }}</p>',
      variables: [{ name: 'firstName', type: 'string', fallback: 'there' }],
    },
  })

const updateTemplate = createTemplate
  .partial()
  .meta({ id: 'UpdateTemplate', description: 'The fields to change.', example: { name: 'Welcome to us' } })

const renderTemplate = z
  .strictObject({
    version: z.enum(['draft', 'published']).optional().meta({ description: 'What is rendered. Default: the draft.' }),
    variables: templateVariables.optional(),
  })
  .meta({ id: 'RenderTemplate', description: 'What to render it with.', example: { variables: { firstName: 'Ada' } } })

const templateParts = ['subject', 'preheader', 'html', 'mjml', 'text', 'variables'] as const

/** The checks of a rendered message: code → meaning. */
export const templateChecks = {
  no_text: 'There is no text part: spam filters dislike that.',
  broken_html: 'An element is not closed, or is closed twice.',
  no_unsubscribe_link: 'Neither HTML nor text has `unsubscribeUrl`, which a campaign needs.',
  image_without_size: 'An image has no width or no height: the message jumps while it loads.',
  too_large: 'The HTML is larger than 102 kB: Gmail cuts it.',
  suspicious_link: 'A link leads nowhere, elsewhere than its text says, or to a number instead of a name.',
  no_dmarc:
    'Of campaigns: the domain of `from` has no DMARC record, as its last check found. Gmail and Yahoo want one.',
} as const

export type TemplateCheckCode = keyof typeof templateChecks

const checkCodes = Object.keys(templateChecks) as [TemplateCheckCode, ...TemplateCheckCode[]]

export const templatePreview = z
  .object({
    subject: z.string().nullable().meta({ description: 'Null where there are errors, as `html` and `text`.' }),
    html: z.string().nullable(),
    text: z.string().nullable(),
    errors: z
      .array(
        z.object({
          part: z.enum(templateParts),
          line: z.int().nullable().meta({ description: 'The line in this part, from 1; null: not in one line.' }),
          message: z.string(),
        }),
      )
      .meta({ description: 'Why it cannot be rendered. Empty: it was.' }),
    checks: z
      .array(
        z.object({
          code: z.enum(checkCodes).meta({
            description: `What was noted: ${Object.entries(templateChecks)
              .map(([code, meaning]) => `\`${code}\`: ${meaning}`)
              .join(' ')} New codes may be added.`,
          }),
          line: z.int().nullable().meta({ description: 'The line in the rendered HTML; null: the whole.' }),
          message: z.string(),
        }),
      )
      .meta({ description: 'What is not good about the message. It can be sent all the same.' }),
  })
  .meta({
    id: 'TemplatePreview',
    description: 'A message, rendered; nothing of it is stored.',
    example: {
      subject: 'Welcome, Ada',
      html: '<p>Hello Ada</p>',
      text: 'Hello Ada',
      errors: [],
      checks: [{ code: 'no_unsubscribe_link', line: null, message: templateChecks.no_unsubscribe_link }],
    },
  })

const idParam = z.object({ id: idSchema('template', 'The template.') })

export type Template = z.infer<typeof template>
export type TemplateSummary = z.infer<typeof summary>
export type CreateTemplate = z.infer<typeof createTemplate>
export type UpdateTemplate = z.infer<typeof updateTemplate>
export type RenderTemplate = z.infer<typeof renderTemplate>
export type TemplateVersion = z.infer<typeof templateVersion>
export type TemplatePreview = z.infer<typeof templatePreview>
export type TemplatePart = (typeof templateParts)[number]
export type TemplateVariable = z.infer<typeof shownVariable>

const writing = { tag: 'Templates', permission: 'templates:write', hasBody: true } as const
const long = { takesAttachments: true, longFields } as const

export const templates = c.router({
  create: {
    method: 'POST',
    path: '/v1/templates',
    summary: 'Create a template',
    description: `Adds a template whose content is a draft: publish it to send emails with it. An account can have ${templateLimits.templates.toLocaleString('en')} templates: 409 for one more.`,
    body: createTemplate,
    ...outcome(
      {
        ...writing,
        ...long,
        operationId: 'createTemplate',
        idempotency: 'with-work',
        errors: ['conflict', 'rule_violation'],
      },
      { 201: template },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/templates',
    summary: 'List templates',
    description: 'Newest first, without their content.',
    query: z.strictObject(pageQuery),
    ...outcome(
      { operationId: 'listTemplates', tag: 'Templates', permission: 'templates:read' },
      { 200: pageOf(summary, 'TemplatePage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/templates/:id',
    summary: 'Get a template',
    description: 'One template with its draft.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'getTemplate', tag: 'Templates', permission: 'templates:read', errors: ['not_found'] },
      { 200: template },
    ),
  },
  update: {
    method: 'PATCH',
    path: '/v1/templates/:id',
    summary: 'Update a template',
    description: 'Changes the fields given: of the draft. What is published stays as it is.',
    pathParams: idParam,
    body: updateTemplate,
    ...outcome(
      { ...writing, ...long, operationId: 'updateTemplate', errors: ['not_found', 'rule_violation'] },
      { 200: template },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/templates/:id',
    summary: 'Delete a template',
    description: 'Deletes it with its versions. Emails that were made of it stay as they are.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'deleteTemplate',
        tag: 'Templates',
        permission: 'templates:write',
        liveKeyOnly: true,
        errors: ['not_found'],
      },
      { 204: c.noBody() },
    ),
  },
  publish: {
    method: 'POST',
    path: '/v1/templates/:id/publish',
    summary: 'Publish a template',
    description:
      'Makes the draft the next version, which emails get from now on. A version never changes. Where nothing has changed, there is no new one.',
    pathParams: idParam,
    body: z.strictObject({}).optional(),
    ...outcome(
      {
        ...writing,
        operationId: 'publishTemplate',
        liveKeyOnly: true,
        idempotency: 'after-work',
        errors: ['not_found', 'template_fault'],
      },
      { 200: template },
    ),
  },
  versions: {
    method: 'GET',
    path: '/v1/templates/:id/versions',
    summary: 'List the versions of a template',
    description: `What was published, newest first: the newest ${templateLimits.versions}, which are kept. Without their content.`,
    pathParams: idParam,
    ...outcome(
      { operationId: 'listTemplateVersions', tag: 'Templates', permission: 'templates:read', errors: ['not_found'] },
      { 200: versionList },
    ),
  },
  render: {
    method: 'POST',
    path: '/v1/templates/:id/render',
    summary: 'Render a template',
    description:
      'Renders the draft or the published version, and says what is not good about it. Variables that are not given have samples: their fallback, or a value of their type. So have `unsubscribeUrl`, `preferencesUrl` and `webUrl`, which a campaign gives: links to `example.com`. Stores and sends nothing.',
    pathParams: idParam,
    body: renderTemplate,
    ...outcome(
      {
        operationId: 'renderTemplate',
        tag: 'Templates',
        permission: 'templates:read',
        hasBody: true,
        takesAttachments: true,
        idempotency: 'after-work',
        errors: ['not_found', 'template_not_found'],
      },
      { 200: templatePreview },
    ),
  },
})
