import { z } from 'zod'
import { eventTypes } from '../../contract/event-types.ts'
import type { EventTypeDescription } from '../../contract/events.ts'

/**
 * Returns every event type with the JSON Schema (2020-12) of its body. The schemas allow additional fields, since later
 * versions may add some.
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

/** Renames OpenAPI's `example` to `examples`, the keyword of JSON Schema. */
function nameExamples({ jsonSchema }: { jsonSchema: Record<string, unknown> }): void {
  if (!('example' in jsonSchema)) return
  jsonSchema.examples = [jsonSchema.example]
  delete jsonSchema.example
}
