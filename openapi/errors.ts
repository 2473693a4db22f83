import type { ExampleObject, ReferenceObject, ResponseObject } from 'openapi3-ts/oas31'
import { type ErrorBody, type ErrorCode, errorBody, errorTable } from '../contract/errors.ts'
import { errorHeaders } from './headers.ts'
import { pascalCase } from './names.ts'
import type { Schema } from './schemas.ts'

/** The error answers of one status: the codes it can carry and the name of their component. */
type ErrorAnswer = { status: number; codes: ErrorCode[]; name: string }

/** The error answers of a route, lowest status first, each with its codes in the order of the table. */
export function errorAnswers(codes: readonly ErrorCode[]): ErrorAnswer[] {
  const known = new Set(codes)
  const inOrder = (Object.keys(errorTable) as ErrorCode[]).filter((code) => known.has(code))
  const byStatus = Map.groupBy(inOrder, (code) => errorTable[code].status)
  return [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, group]) => ({ status, codes: group, name: group.map(pascalCase).join('Or') }))
}

export function errorResponseRef(answer: ErrorAnswer): ReferenceObject {
  return { $ref: `#/components/responses/${answer.name}` }
}

/** The component that describes `answer`: its codes, and an example of each. */
export function errorResponse(answer: ErrorAnswer, schema: Schema): ResponseObject {
  return {
    description: answer.codes.map((code) => `\`${code}\`: ${errorTable[code].meaning}`).join('\n\n'),
    headers: errorHeaders(answer.status),
    content: {
      'application/json': {
        schema,
        examples: Object.fromEntries(answer.codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
  }
}

const requestId = 'req_01jqz4x7m8e5v9t2k6r3w0y1ab'

const detailed: Partial<Record<ErrorCode, ErrorBody['error']['details']>> = {
  validation_error: [{ path: 'body.events', message: 'at least one event type is needed' }],
}

/** An example of the body of every error the API can answer. */
export function errorExample(code: ErrorCode): ExampleObject {
  const details = detailed[code]
  const message = errorTable[code].meaning.replaceAll('`', '')
  const value: ErrorBody = errorBody.parse({ error: { code, message, ...(details && { details }), requestId } })
  return { summary: code, value }
}
