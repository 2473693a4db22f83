import type { Result } from '../../api/client.ts'

export type Webhook = Result<'GET /v1/webhooks/:id'>
