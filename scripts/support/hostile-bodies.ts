import type {
  OpenAPIObject,
  OperationObject,
  ReferenceObject,
  RequestBodyObject,
  SchemaObject,
} from 'openapi3-ts/oas31'

/*
 * The largest requests that the published spec allows: each string of each body in several shapes. All fields come from
 * the spec and none from the contract, so that every published field is tried.
 */

/** A request with the largest body that its route accepts. */
export type HostileRequest = {
  /** The operation, the field and the shape. */
  name: string
  method: 'POST' | 'PUT' | 'PATCH'
  path: string
  /** True when its route accepts the larger bodies, with attachments. */
  isLarge: boolean
  /** Returns a body with as many bytes as its route accepts. */
  body(): Buffer
}

type Schema = SchemaObject | ReferenceObject
type Place = { at: readonly (string | number)[]; isName: boolean }

/** Values of a field as JSON: the start, the repeated part and the end. */
export const shapes = {
  'one character': ['"', 'x', '"'],
  'a repeated parameter': ['"a/b', ';a=b', '"'],
  'a repeated word': ['"T', ' 1:11a.', '@example.com"'],
  'surrogate pairs in escapes': ['"', '\\ud83d\\ude00', '"'],
  'halves of pairs': ['"', '\\ud83d', '"'],
  'one wide character among narrow ones': ['"😀', 'x', '"'],
  'escaped quotation marks': ['"', '\\"', '"'],
  nesting: ['[', '[', ''],
  'a list of numbers': ['[0', ',0', ']'],
  'a list of texts': ['[""', ',""', ']'],
  'a list of objects': ['[{}', ',{"a":[]}', ']'],
} as const satisfies Record<string, readonly [string, string, string]>

export type Shape = keyof typeof shapes

/** Largest bodies, in bytes. */
export type BodySizes = { usual: number; large: number }

/** Returns a request for each shape in each field that is or holds a string, and for each name that clients choose. */
export function hostileRequests(spec: OpenAPIObject, sizes: BodySizes): HostileRequest[] {
  return Object.entries(spec.paths ?? {}).flatMap(([template, item]) =>
    (['post', 'put', 'patch'] as const).flatMap((key) => {
      const operation = item[key]
      const schema = operation === undefined ? null : bodyOf(spec, operation)
      if (operation === undefined || schema === null) return []
      const isLarge = template === '/v1/emails' || template === '/v1/emails/batch'
      const about = {
        method: key.toUpperCase() as HostileRequest['method'],
        path: template.replaceAll(/\{\w+\}/g, () => exampleOf(spec, template)),
        isLarge,
      }
      const base = follow(spec, schema).examples?.[0] ?? {}
      const places = [...placesOf(spec, schema, []), { at: ['unknown'], isName: false }, { at: [], isName: true }]
      return unique(places).flatMap((place) =>
        (Object.keys(shapes) as Shape[])
          .filter((shape) => !place.isName || shape === 'one character')
          .map((shape) => ({
            name: `${operation.operationId} ${place.isName ? 'a name in ' : ''}${place.at.join('.') || 'the body'}: ${shape}`,
            ...about,
            body: () => fill(withMarker(base, place), place, { shape, size: isLarge ? sizes.large : sizes.usual }),
          })),
      )
    }),
  )
}

/** Returns a well-formed identifier for the path. */
function exampleOf(spec: OpenAPIObject, template: string): string {
  const item = Object(spec.paths?.[template])
  const operations = [item.post, item.put, item.patch, item.get].filter((operation) => operation !== undefined)
  const parameters = operations.flatMap((operation: OperationObject) => operation.parameters ?? [])
  for (const parameter of parameters) {
    const { schema, in: place } = follow<{ schema?: Schema; in: string }>(spec, parameter as { in: string })
    const [example] = schema === undefined ? [] : (follow(spec, schema).examples ?? [])
    if (place === 'path' && typeof example === 'string') return example
  }
  return 'unknown'
}

function bodyOf(spec: OpenAPIObject, { requestBody }: OperationObject): Schema | null {
  if (requestBody === undefined) return null
  return follow<RequestBodyObject>(spec, requestBody).content['application/json']?.schema ?? null
}

function follow<T extends object>(spec: OpenAPIObject, value: T | ReferenceObject): T {
  if (!('$ref' in value)) return value
  const keys = value.$ref.replace('#/', '').split('/')
  return keys.reduce<unknown>((at, key) => Object(at)[key], spec) as T
}

/** Follows each reference once on a path, so that a schema that holds itself comes to an end. */
function placesOf(spec: OpenAPIObject, schema: Schema, at: Place['at'], followed: readonly string[] = []): Place[] {
  if ('$ref' in schema && followed.includes(schema.$ref)) return []
  const inside = '$ref' in schema ? [...followed, schema.$ref] : followed
  const { anyOf, oneOf, type, items, properties, additionalProperties } = follow(spec, schema)
  const choices = anyOf ?? oneOf
  if (choices !== undefined) return choices.flatMap((choice) => placesOf(spec, choice, at, inside))
  if (items !== undefined) return placesOf(spec, items, [...at, 0], inside)
  if (properties !== undefined) {
    return Object.entries(properties).flatMap(([name, field]) => placesOf(spec, field, [...at, name], inside))
  }
  if (typeof additionalProperties === 'object') {
    return [...placesOf(spec, additionalProperties, [...at, 'X-Name'], inside), { at, isName: true }]
  }
  return [type ?? []].flat().includes('string') ? [{ at, isName: false }] : []
}

function unique(places: readonly Place[]): Place[] {
  return [...new Map(places.map((place) => [JSON.stringify(place), place])).values()]
}

const marker = 'the value goes here'

/** Returns the example with the marker at a place. */
function withMarker(base: unknown, { at, isName }: Place): unknown {
  const put = (value: unknown, [step, ...rest]: readonly (string | number)[]): unknown => {
    if (step === undefined) return isName ? { ...Object(value), [marker]: 'x' } : marker
    if (typeof step === 'number') return [put(Array.isArray(value) ? value[0] : undefined, rest)]
    const fields = typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
    return { ...fields, [step]: put(Object(fields)[step], rest) }
  }
  return put(base, at)
}

function fill(value: unknown, { isName }: Place, { shape, size }: { shape: Shape; size: number }): Buffer {
  const [before = '', after = ''] = JSON.stringify(value).split(`"${marker}"`)
  const [begin, again, end] = isName ? shapes['one character'] : shapes[shape]
  const head = Buffer.from(before + begin)
  // Nesting closes each bracket that it opens.
  const isNesting = !isName && shape === 'nesting'
  const tail = Buffer.from(end + after)
  const room = size - head.length - tail.length - 1
  const times = Math.floor(room / (Buffer.byteLength(again) * (isNesting ? 2 : 1)))
  const middle = times <= 0 ? Buffer.alloc(0) : Buffer.alloc(times * Buffer.byteLength(again), again)
  const closing = isNesting ? Buffer.alloc(times + 1, ']') : Buffer.alloc(0)
  return Buffer.concat([head, middle, closing, tail])
}
