/** A field of an event, for people. */
export type EventField = {
  /** As `data.emailId`. */
  name: string
  /** Such as "string or null". */
  type: string
  description: string
  isRequired: boolean
}

type Json = Readonly<Record<string, unknown>>

/** Returns the fields of the JSON Schema of an event, those within others too, in their order. */
export function fieldsOf(schema: Json): EventField[] {
  const definitions = objectIn(schema, '$defs')

  function resolved(part: Json): Json {
    const name = typeof part.$ref === 'string' ? part.$ref.replace('#/$defs/', '') : null
    return name === null ? part : { ...objectIn(definitions, name), ...part }
  }

  function within(part: Json, prefix: string, depth: number): EventField[] {
    const required = Array.isArray(part.required) ? part.required : []
    return Object.entries(objectIn(part, 'properties')).flatMap(([key, value]) => {
      const field = resolved(Object(value))
      const name = prefix + key
      const own = { name, type: typeOf(field), description: descriptionOf(field), isRequired: required.includes(key) }
      return [own, ...(depth < 3 ? within(field, `${name}.`, depth + 1) : [])]
    })
  }

  return within(resolved(schema), '', 0)
}

function objectIn(part: Json, key: string): Json {
  return Object(Object.hasOwn(part, key) ? part[key] : {})
}

function typeOf({ type, format, enum: values, const: value }: Json): string {
  if (value !== undefined) return JSON.stringify(value)
  if (Array.isArray(values)) return values.map((one) => JSON.stringify(one)).join(' or ')
  const names = [type].flat().filter((name) => typeof name === 'string')
  const known = names.length === 0 ? 'any' : names.join(' or ')
  return typeof format === 'string' ? `${known} (${format})` : known
}

function descriptionOf({ description }: Json): string {
  return typeof description === 'string' ? description : ''
}
