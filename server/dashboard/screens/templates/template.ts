import type { Result } from '../../api/client.ts'

export type Template = Result<'GET /v1/templates/:id'>
export type TemplateSummary = Result<'GET /v1/templates'>['data'][number]
export type TemplatePreview = Result<'POST /v1/templates/:id/render'>
export type TemplateVariable = Template['variables'][number]

/** Returns whether a template can be sent, and whether what is sent is what is written. */
export function publicationOf({ publishedVersion, hasUnpublishedChanges }: TemplateSummary): string {
  if (publishedVersion === null) return 'draft'
  return hasUnpublishedChanges ? 'changed' : 'published'
}

/** Returns the words for what emails get, to stand below the state. */
export function versionOf({ publishedVersion, hasUnpublishedChanges }: TemplateSummary): string {
  if (publishedVersion === null) return 'Never published'
  return hasUnpublishedChanges ? `Emails get version ${publishedVersion}` : `Version ${publishedVersion}`
}
