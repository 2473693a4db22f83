import { type Selectable, sql } from 'kysely'
import { templateLimits } from '../../contract/template-variables.ts'
import type { TemplateVariable } from '../../contract/templates.ts'
import { lockAccount } from '../database/account-lock.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { TemplatesTable, TemplateVersionsTable } from '../database/tables/templates.ts'

export type TemplateRow = Selectable<TemplatesTable>
export type TemplateSummaryRow = Omit<TemplateRow, 'preheader' | 'html' | 'mjml' | 'text' | 'variables'>
export type VersionRow = Selectable<TemplateVersionsTable>

/** The name, the content and the variables of a template. */
export type Draft = {
  name: string
  subject: string
  preheader: string | null
  html: string | null
  mjml: string | null
  text: string | null
  variables: readonly TemplateVariable[]
}

export async function insertTemplate(
  handle: Handle,
  { id, accountId, draft, at }: { id: string; accountId: string; draft: Draft; at: Date },
): Promise<TemplateRow> {
  const variables = JSON.stringify(draft.variables)
  return handle
    .insertInto('templates')
    .values({ account_id: accountId, id, ...draft, variables, revision: 1, created_at: at, updated_at: at })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Counts the templates of an account, which is locked until the transaction ends. */
export async function countTemplates(trx: Trx, accountId: string): Promise<number> {
  await lockAccount(trx, accountId)
  const { count } = await trx
    .selectFrom('templates')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return Number(count)
}

function oneTemplate(handle: Handle, accountId: string, id: string) {
  return handle.selectFrom('templates').selectAll().where('account_id', '=', accountId).where('id', '=', id)
}

export async function findTemplate(handle: Handle, accountId: string, id: string): Promise<TemplateRow | undefined> {
  return oneTemplate(handle, accountId, id).executeTakeFirst()
}

/** Locks a template for a change. */
export async function lockTemplate(trx: Trx, accountId: string, id: string): Promise<TemplateRow | undefined> {
  return oneTemplate(trx, accountId, id).forNoKeyUpdate().executeTakeFirst()
}

/** @param page.after Id of the last row of the page before. Newest first. */
export async function selectTemplates(
  handle: Handle,
  accountId: string,
  page: { after?: string | undefined; limit: number },
): Promise<TemplateSummaryRow[]> {
  let query = handle
    .selectFrom('templates')
    .select(['account_id', 'id', 'name', 'subject', 'revision', 'published_revision', 'published_version'])
    .select(['published_at', 'created_at', 'updated_at'])
    .where('account_id', '=', accountId)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

export async function updateTemplate(
  trx: Trx,
  { account_id, id }: TemplateRow,
  change: { draft: Draft; revision: number; at: Date },
): Promise<TemplateRow> {
  const { draft, revision, at } = change
  return trx
    .updateTable('templates')
    .set({ ...draft, variables: JSON.stringify(draft.variables), revision, updated_at: at })
    .where('account_id', '=', account_id)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Stores what a locked template says as a version, and makes it the published one. The newest versions are kept. */
export async function publishVersion(
  trx: Trx,
  { account_id, id, subject, preheader, html, text, variables, revision }: TemplateRow,
  { version, at }: { version: number; at: Date },
): Promise<TemplateRow> {
  const content = { subject, preheader, html, text, variables: JSON.stringify(variables) }
  await trx
    .insertInto('template_versions')
    .values({ account_id, template_id: id, version, ...content, published_at: at })
    .execute()
  await trx
    .deleteFrom('template_versions')
    .where('account_id', '=', account_id)
    .where('template_id', '=', id)
    .where('version', '<=', version - templateLimits.versions)
    .execute()
  return trx
    .updateTable('templates')
    .set({ published_revision: revision, published_version: version, published_at: at })
    .where('account_id', '=', account_id)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Returns the versions of a template, newest first. */
export async function selectVersions(
  handle: Handle,
  accountId: string,
  id: string,
): Promise<Pick<VersionRow, 'version' | 'subject' | 'published_at'>[]> {
  return handle
    .selectFrom('template_versions')
    .select(['version', 'subject', 'published_at'])
    .where('account_id', '=', accountId)
    .where('template_id', '=', id)
    .orderBy('version', 'desc')
    .limit(templateLimits.versions)
    .execute()
}

/** Deletes a template with its versions. Returns what it was called. Undefined: it was not there. */
export async function deleteTemplate(
  trx: Trx,
  accountId: string,
  id: string,
): Promise<Pick<TemplateRow, 'id' | 'name'> | undefined> {
  return trx
    .deleteFrom('templates')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .returning(['id', 'name'])
    .executeTakeFirst()
}

function publishedOf(handle: Handle, accountId: string, ids: readonly string[]) {
  return handle
    .selectFrom('templates as t')
    .innerJoin('template_versions as v', (join) =>
      join
        .onRef('v.account_id', '=', 't.account_id')
        .onRef('v.template_id', '=', 't.id')
        .onRef('v.version', '=', 't.published_version'),
    )
    .where('t.account_id', '=', accountId)
    .where('t.id', '=', sql<string>`ANY(${ids}::text[])`)
}

/** Returns the published versions of templates. Those that were never published are left out. */
export async function selectPublished(
  handle: Handle,
  accountId: string,
  ids: readonly string[],
): Promise<VersionRow[]> {
  return publishedOf(handle, accountId, ids).selectAll('v').execute()
}

/** Returns the subjects of what `selectPublished` returns. */
export async function selectPublishedSubjects(
  handle: Handle,
  accountId: string,
  ids: readonly string[],
): Promise<Pick<VersionRow, 'template_id' | 'subject'>[]> {
  return publishedOf(handle, accountId, ids).select(['v.template_id', 'v.subject']).execute()
}
