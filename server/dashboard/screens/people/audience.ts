import type { Result } from '../../api/client.ts'

export type Audience = Result<'GET /v1/audiences/:id'>
