import { templateLimits } from '../../contract/template-variables.ts'
import type { CreateTemplate, TemplateVariable } from '../../contract/templates.ts'
import type { ErrorDetail } from '../shared/errors.ts'

type Type = TemplateVariable['type']

/** The types of variables: the words for a value in messages to people, and the check of a value. */
const types: Record<Type, { is: string; fits: (value: unknown) => boolean }> = {
  string: { is: 'a text', fits: (value) => typeof value === 'string' },
  number: { is: 'a number', fits: (value) => typeof value === 'number' && Number.isFinite(value) },
  boolean: { is: 'true or false', fits: (value) => typeof value === 'boolean' },
  date: { is: 'a date such as 2026-03-01 or 2026-03-01T09:30:00Z', fits: isDate },
  list: { is: 'a list', fits: Array.isArray },
  object: { is: 'an object', fits: (value) => typeof value === 'object' && value !== null && !Array.isArray(value) },
}

function isDate(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    value.length <= 40 &&
    /^\d{4}-\d{2}-\d{2}(T.*)?$/.test(value) &&
    !Number.isNaN(Date.parse(value))
  )
}

/** Reads the declared variables of a template. Returns them, or what is wrong with them. */
export function readDeclared(declared: NonNullable<CreateTemplate['variables']>): {
  variables: TemplateVariable[]
  faults: ErrorDetail[]
} {
  const faults: ErrorDetail[] = []
  const names = new Set<string>()
  const variables = declared.map(({ name, type, required = false, fallback = null }, index) => {
    const path = `body.variables[${index}]`
    if (names.has(name)) faults.push({ path: `${path}.name`, message: 'is there already' })
    names.add(name)
    if (fallback !== null && !types[type].fits(fallback)) {
      faults.push({ path: `${path}.fallback`, message: `must be ${types[type].is}` })
    }
    if (fallback !== null && required) {
      faults.push({ path: `${path}.fallback`, message: 'must not be given for a variable that is required' })
    }
    return { name, type, required, fallback }
  })
  return { variables, faults }
}

/**
 * Returns the values to render a template with: those given, and fallbacks for others. Null counts as not given. Values
 * that are not declared are taken as they are.
 *
 * @param path Where the values stand in the request.
 */
export function readValues(
  declared: readonly TemplateVariable[],
  given: Readonly<Record<string, unknown>>,
  path: string,
): { values: Record<string, unknown>; faults: ErrorDetail[] } {
  const faults: ErrorDetail[] = []
  const values: Record<string, unknown> = { ...given }
  if (Buffer.byteLength(JSON.stringify(given)) > templateLimits.valuesBytes) {
    return { values, faults: [{ path, message: `must be at most ${templateLimits.valuesBytes} bytes as JSON` }] }
  }
  for (const { name, type, required, fallback } of declared) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    if (value === undefined || value === null) {
      if (required) faults.push({ path: `${path}.${name}`, message: 'is required' })
      values[name] = fallback
    } else if (!types[type].fits(value)) {
      faults.push({ path: `${path}.${name}`, message: `must be ${types[type].is}` })
    }
  }
  return { values, faults }
}

/** Links that a campaign makes for each person, as previews show them: a real one would unsubscribe somebody. */
export const sampleLinks: Readonly<Record<'unsubscribeUrl' | 'preferencesUrl' | 'webUrl', string>> = {
  unsubscribeUrl: 'https://example.com/unsubscribe',
  preferencesUrl: 'https://example.com/unsubscribe/preferences',
  webUrl: 'https://example.com/message',
}

/**
 * Returns the values of a preview that are not given: `sampleLinks`, and for each declared variable its fallback, or one
 * of its type.
 */
export function sampleValues(declared: readonly TemplateVariable[]): Record<string, unknown> {
  const samples: Record<Type, unknown> = {
    string: 'Sample',
    number: 1,
    boolean: true,
    date: '2026-03-01',
    list: [],
    object: {},
  }
  const links = new Map<string, unknown>(Object.entries(sampleLinks))
  const values = declared.map(({ name, type, fallback }) => [name, fallback ?? links.get(name) ?? samples[type]])
  return { ...sampleLinks, ...Object.fromEntries(values) }
}
