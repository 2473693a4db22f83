import { z } from 'zod'
import { eventTypes } from '../../contract/event-types.ts'
import type { EventTypeDescription } from '../../contract/events.ts'

/**
 * Every event type with the JSON Schema (2020-12) of its body. The schema lets bodies have more
 * fields than it names, since later versions may add some.
 */
export function describeEventTypes(): EventTypeDescription[] {
  return [...eventTypes.values()].map(({ name, meaning, shared, body, exampleBody }) => ({
    type: name,
    meaning,
    shared,
    schema: z.toJSONSchema(body, { target: 'draft-2020-12', io: 'input', override: nameExamples }),
    example: exampleBody,
  }))
}

/** OpenAPI's `example` is not a keyword of JSON Schema; its `examples` is. */
function nameExamples({ jsonSchema }: { jsonSchema: Record<string, unknown> }): void {
  if (!('example' in jsonSchema)) return
  jsonSchema.examples = [jsonSchema.example]
  delete jsonSchema.example
}
