import type { Page, PageQuery } from '../../contract/pagination.ts'
import { templateLimits } from '../../contract/template-variables.ts'
import type {
  CreateTemplate,
  RenderTemplate,
  Template,
  TemplatePreview,
  TemplateSummary,
  TemplateVersion,
  UpdateTemplate,
} from '../../contract/templates.ts'
import { type NewAuditEntry, record } from '../audit-log/record.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { Rendered } from '../rendering/renderer.ts'
import { brokenRules, DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope } from '../shared/scope.ts'
import { detailsOf, markupOf, noMarkup, sentenceOf } from './mjml.ts'
import { previewOf } from './preview.ts'
import {
  countTemplates,
  type Draft,
  deleteTemplate,
  findTemplate,
  insertTemplate,
  lockTemplate,
  publishVersion,
  selectPublished,
  selectTemplates,
  selectVersions,
  type TemplateRow,
  updateTemplate,
  type VersionRow,
} from './queries.ts'
import { renderUses, type TemplateUse } from './rendered-emails.ts'
import type { RendererTurns } from './renderer-turns.ts'
import { toSummary, toTemplate } from './to-response.ts'
import { readDeclared, sampleValues } from './variables.ts'

/** Use cases for templates, which both modes share. Throws DomainErrors. Every call is limited to one account. */
export type TemplateService = {
  /** Throws `rule_violation` for its variables, and `conflict` when the account has the most templates. */
  create(handle: Handle, accountId: string, template: CreateTemplate): Promise<Template>
  /** Returns templates, newest first. */
  list(handle: Handle, accountId: string, query: PageQuery): Promise<Page<TemplateSummary>>
  get(handle: Handle, accountId: string, id: string): Promise<Template>
  /** Changes the draft. */
  update(handle: Handle, accountId: string, id: string, patch: UpdateTemplate): Promise<Template>
  delete(handle: Handle, scope: AuthoredScope, id: string): Promise<void>
  /** Makes the draft the next version, unless it is published already. Throws `template_fault`. */
  publish(handle: Handle, scope: AuthoredScope, id: string): Promise<Template>
  /** Returns what was published, newest first: the versions that are kept. */
  versions(handle: Handle, accountId: string, id: string): Promise<TemplateVersion[]>
  /** Renders the draft or the published version. Throws `template_not_found` for the latter where there is none. */
  preview(handle: Handle, accountId: string, request: RenderTemplate & { id: string }): Promise<TemplatePreview>
  /** Renders published templates for emails: see `renderUses`. */
  render(handle: Handle, accountId: string, uses: readonly TemplateUse[]): Promise<(Rendered | DomainError)[]>
}

export type TemplateServiceOptions = { clock: Clock; rendererOf: RendererTurns }

export function createTemplateService({ clock, rendererOf }: TemplateServiceOptions): TemplateService {
  async function find(handle: Handle, accountId: string, id: string): Promise<TemplateRow> {
    const row = await findTemplate(handle, accountId, id)
    if (row === undefined) throw notFound('template', id)
    return row
  }

  async function findPublished(handle: Handle, accountId: string, id: string): Promise<VersionRow> {
    await find(handle, accountId, id)
    const [version] = await selectPublished(handle, accountId, [id])
    if (version !== undefined) return version
    throw new DomainError('template_not_found', `The template "${id}" was never published: publish it first.`)
  }

  /** Returns a draft with its HTML, which it lacks where its MJML had a fault. Throws `template_fault`. */
  async function compiled(accountId: string, draft: TemplateRow): Promise<TemplateRow> {
    if (draft.mjml === null || draft.html !== null) return draft
    const { html, faults } = await rendererOf(accountId).compileMjml(draft.mjml)
    if (html !== null) return { ...draft, html }
    const said = faults.slice(0, 1).map(sentenceOf).join('')
    const details = detailsOf(faults, 'mjml')
    throw new DomainError('template_fault', `The template "${draft.id}" has a fault: ${said}`, { details })
  }

  async function audit(
    trx: Trx,
    { accountId, author }: AuthoredScope,
    { id, name }: Pick<TemplateRow, 'id' | 'name'>,
    change: Pick<NewAuditEntry, 'action' | 'details'>,
  ): Promise<void> {
    await record(trx, { accountId, at: clock.now(), author, target: { type: 'template', id, name }, ...change })
  }

  return {
    async create(handle, accountId, template) {
      const { name, subject, preheader = null, text = null, variables = [] } = template
      const read = { name, subject, preheader, text, variables: declared(variables) }
      const changed = await markupOf(rendererOf(accountId), template, { path: 'body' })
      const draft = { ...read, ...changed(noMarkup) }
      return inTransaction(handle, async (trx) => {
        if ((await countTemplates(trx, accountId)) >= templateLimits.templates) throw tooMany()
        const at = clock.now()
        return toTemplate(await insertTemplate(trx, { id: newId('template', at), accountId, draft, at }))
      })
    },
    async list(handle, accountId, { limit, cursor }) {
      const rows = await selectTemplates(handle, accountId, {
        after: decodeCursor('template', cursor),
        limit: limit + 1,
      })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toSummary })
    },
    async get(handle, accountId, id) {
      return toTemplate(await find(handle, accountId, id))
    },
    async update(handle, accountId, id, { variables, html, mjml, ...patch }) {
      const changed = variables === undefined ? {} : { variables: declared(variables) }
      const changedMarkup = await markupOf(rendererOf(accountId), { html, mjml }, { path: 'body' })
      return inTransaction(handle, async (trx) => {
        const before = await lockTemplate(trx, accountId, id)
        if (before === undefined) throw notFound('template', id)
        const draft: Draft = {
          ...draftOf(before),
          ...withoutUndefined(patch),
          ...changed,
          ...changedMarkup(before),
        }
        const isSame = contentOf(draft) === contentOf(before)
        if (isSame && draft.name === before.name) return toTemplate(before)
        const revision = isSame ? before.revision : before.revision + 1
        return toTemplate(await updateTemplate(trx, before, { draft, revision, at: clock.now() }))
      })
    },
    async delete(handle, scope, id) {
      await inTransaction(handle, async (trx) => {
        const deleted = await deleteTemplate(trx, scope.accountId, id)
        if (deleted === undefined) throw notFound('template', id)
        await audit(trx, scope, deleted, { action: 'template.deleted' })
      })
    },
    async publish(handle, scope, id) {
      const { accountId } = scope
      const draft = await compiled(accountId, await find(handle, accountId, id))
      if (draft.html === null && draft.text === null) {
        throw new DomainError('template_fault', `The template "${id}" has neither HTML nor text: give it one of them.`)
      }
      const fault = await rendererOf(accountId).faultOf(draftOf(draft))
      if (fault !== null) throw new DomainError('template_fault', `The template "${id}" has a fault: ${fault}`)
      return inTransaction(handle, async (trx) => {
        const now = await lockTemplate(trx, accountId, id)
        if (now === undefined) throw notFound('template', id)
        // It, or a later one, was published meanwhile or before.
        if ((now.published_revision ?? 0) >= draft.revision) return toTemplate(now)
        const version = (now.published_version ?? 0) + 1
        await audit(trx, scope, now, { action: 'template.published', details: { version: String(version) } })
        return toTemplate(await publishVersion(trx, draft, { version, at: clock.now() }))
      })
    },
    async versions(handle, accountId, id) {
      await find(handle, accountId, id)
      const rows = await selectVersions(handle, accountId, id)
      return rows.map(({ version, subject, published_at: at }) => ({ version, subject, publishedAt: at.toISOString() }))
    },
    async preview(handle, accountId, { id, version, variables = {} }) {
      const row = await (version === 'published' ? findPublished : find)(handle, accountId, id)
      const { subject, preheader, html, text } = row
      const mjml = 'mjml' in row ? row.mjml : null
      const values = { ...sampleValues(row.variables), ...variables }
      return previewOf(rendererOf(accountId), { subject, preheader, html, mjml, text }, values)
    },
    render: (handle, accountId, uses) => renderUses(rendererOf(accountId), { handle, accountId }, uses),
  }
}

function tooMany(): DomainError {
  const most = templateLimits.templates.toLocaleString('en')
  return new DomainError('conflict', `The account has ${most} templates, which is the most it can: delete one first.`)
}

function declared(variables: NonNullable<CreateTemplate['variables']>) {
  const read = readDeclared(variables)
  if (read.faults.length > 0) throw brokenRules(read.faults)
  return read.variables
}

function draftOf({ name, subject, preheader, html, mjml, text, variables }: TemplateRow): Draft {
  return { name, subject, preheader, html, mjml, text, variables }
}

/** Returns the fields of a draft that a version has too, as one text to compare. */
function contentOf({ subject, preheader, html, mjml, text, variables }: Draft): string {
  const listed = variables.map(({ name, type, required, fallback }) => [name, type, required, fallback])
  return JSON.stringify([subject, preheader, html, mjml, text, listed])
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(patch: T): Partial<Defined<T>> {
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined)) as Partial<Defined<T>>
}
