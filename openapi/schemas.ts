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
  /**
   * A parameter of a request. Its description stands in the parameter: generators for Rust make code that does not
   * compile of one beside a `$ref` in the schema of a parameter.
   */
  parameter(schema: z.ZodType, place: string): Schema
  /** What the server sends. `place` names the use and must be unique. */
  output(schema: z.ZodType, place: string): Schema
  components(): [name: string, schema: Schema][]
}

/** The JSON types of the values a schema takes, as far as its kind tells; null: it does not. */
const jsonTypes: Readonly<Record<string, string>> = {
  string: 'string',
  enum: 'string',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
  array: 'array',
  object: 'object',
  record: 'object',
}

/** The schema that reads a value in the end, behind what looks at it first. */
function readBy(schema: z.core.$ZodType): z.core.$ZodType {
  const definition = schema._zod.def
  return definition.type === 'pipe' && 'out' in definition ? readBy(definition.out as z.core.$ZodType) : schema
}

/** Returns true when a value can fit one member of a union only, because each member takes another JSON type. */
function isExclusive(members: readonly z.core.$ZodType[]): boolean {
  const types = members.map((member) => jsonTypes[readBy(member)._zod.def.type])
  return !types.includes(undefined) && new Set(types).size === types.length
}

/**
 * Objects the server sends are open, so that a field can be added without breaking a strict client;
 * objects it reads say themselves that they are closed. Examples take the form of OpenAPI 3.1. A union of which
 * exactly one member fits is `oneOf`: some generators (Rust) make an empty type of `anyOf`. A union has no
 * `discriminator`: openapi-generator for Rust (7.22) takes the field for the tag and demands it of the member once
 * more, so that nothing can be read. The constant in each member tells them apart as well.
 */
const override: ZodOpenApiOverride = ({ jsonSchema, zodSchema, io }) => {
  const definition = zodSchema._zod.def
  if (io === 'output' && definition.type === 'object') delete jsonSchema.additionalProperties
  if (jsonSchema.anyOf !== undefined && definition.type === 'union' && 'options' in definition) {
    if (isExclusive(definition.options as z.core.$ZodType[])) {
      jsonSchema.oneOf = jsonSchema.anyOf
      delete jsonSchema.anyOf
    }
  }
  delete jsonSchema.discriminator
  if ('example' in jsonSchema) {
    // Undefined takes away what the schema would inherit.
    if (jsonSchema.example === undefined) delete jsonSchema.examples
    else jsonSchema.examples = [jsonSchema.example]
    delete jsonSchema.example
  }
}

export function createSchemaWriter(): SchemaWriter {
  const registry = createRegistry()
  const add = (schema: z.ZodType, place: string, io: 'input' | 'output'): Schema =>
    // zod-openapi has types of its own for OpenAPI 3.2, which 3.1 documents are a subset of.
    registry.addSchema(schema, [place], { io, source: { type: 'mediaType' } }) as Schema
  const ofParameters: Schema[] = []
  return {
    input: (schema, place) => add(schema, place, 'input'),
    parameter(schema, place) {
      const written = add(schema, place, 'input')
      ofParameters.push(written)
      return written
    },
    output: (schema, place) => add(schema, place, 'output'),
    components() {
      const { schemas = {} } = createComponents(registry, { override, cycles: 'ref' }, '3.1.0')
      for (const schema of ofParameters) if ('$ref' in schema) delete schema.description
      const components = Object.entries(schemas) as [string, Schema][]
      return components.sort(([a], [b]) => (a < b ? -1 : 1))
    },
  }
}
