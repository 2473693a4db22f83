import type { ReferenceObject, SchemaObject } from 'openapi3-ts/oas31'
import type { z } from 'zod'
import { createComponents, createRegistry, type ZodOpenApiOverride } from 'zod-openapi/api'

export type Schema = SchemaObject | ReferenceObject

/**
 * Writes zod schemas as JSON Schema. A schema with an id becomes a component and every use of it a
 * `$ref`.
 *
 * The schemas handed out are empty until `components()` is called, which must happen once and last:
 * only then is it known which of them are shared.
 */
export type SchemaWriter = {
  /** What a client sends. `place` names the use and must be unique. */
  input(schema: z.ZodType, place: string): Schema
  /** What the server sends. `place` names the use and must be unique. */
  output(schema: z.ZodType, place: string): Schema
  components(): [name: string, schema: Schema][]
}

/**
 * Objects the server sends are open, so that a field can be added without breaking a strict client;
 * objects it reads say themselves that they are closed. Examples take the form of OpenAPI 3.1.
 */
const override: ZodOpenApiOverride = ({ jsonSchema, zodSchema, io }) => {
  const definition = zodSchema._zod.def
  if (io === 'output' && definition.type === 'object') delete jsonSchema.additionalProperties
  if ('example' in jsonSchema) {
    jsonSchema.examples = [jsonSchema.example]
    delete jsonSchema.example
  }
}

export function createSchemaWriter(): SchemaWriter {
  const registry = createRegistry()
  const add = (schema: z.ZodType, place: string, io: 'input' | 'output'): Schema =>
    // zod-openapi has types of its own for OpenAPI 3.2, which 3.1 documents are a subset of.
    registry.addSchema(schema, [place], { io, source: { type: 'mediaType' } }) as Schema
  return {
    input: (schema, place) => add(schema, place, 'input'),
    output: (schema, place) => add(schema, place, 'output'),
    components() {
      const { schemas = {} } = createComponents(registry, { override, cycles: 'throw' }, '3.1.0')
      const components = Object.entries(schemas) as [string, Schema][]
      return components.sort(([a], [b]) => (a < b ? -1 : 1))
    },
  }
}
