import type { Result } from '../../api/client.ts'

export type EmailDetails = Result<'GET /v1/emails/:id'>
