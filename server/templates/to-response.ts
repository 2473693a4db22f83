import type { Template, TemplateSummary } from '../../contract/templates.ts'
import type { TemplateRow, TemplateSummaryRow } from './queries.ts'

export function toSummary(row: TemplateSummaryRow): TemplateSummary {
  return {
    id: row.id,
    name: row.name,
    subject: row.subject,
    publishedVersion: row.published_version,
    publishedAt: row.published_at?.toISOString() ?? null,
    hasUnpublishedChanges: row.revision !== row.published_revision,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}

export function toTemplate(row: TemplateRow): Template {
  const { preheader, html, mjml, text, variables } = row
  return { ...toSummary(row), preheader, html, mjml, text, variables }
}
