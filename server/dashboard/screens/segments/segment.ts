import type { Result } from '../../api/client.ts'

export type Segment = Result<'GET /v1/segments/:id'>
