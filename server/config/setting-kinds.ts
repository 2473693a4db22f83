import { z } from 'zod'

/** The documentation of a setting. */
export type SettingInfo = {
  unit: string
  /** The default as text, or a description of it. Null when there is none. */
  default: string | null
  meaning: string
  /** Ends the sentence "must be …". */
  allowed: string
}

/** The documentation of all settings, by schema. */
export const about = z.registry<SettingInfo>()

/** Returns the schema of a setting with a default, which is parsed like a given value. */
export function setting<T>(info: SettingInfo & { default: string }, schema: z.ZodType<T, string>) {
  return schema.prefault(info.default).register(about, info)
}

/** Returns the schema of an optional setting, null when it is missing. `info.default` says what that means. */
export function optionalSetting<T>(info: SettingInfo, schema: z.ZodType<T, string>) {
  return schema
    .optional()
    .transform((value) => value ?? null)
    .register(about, info)
}

export function wholeNumber({ min, max }: { min: number; max: number }) {
  return z.string().regex(/^\d+$/).transform(Number).pipe(z.int().min(min).max(max))
}

export function numberSetting(info: { unit: string; default: number; min: number; max: number; meaning: string }) {
  const { unit, min, max, meaning } = info
  const allowed = `a whole number from ${text(min)} to ${text(max)}`
  return setting({ unit, default: String(info.default), meaning, allowed }, wholeNumber({ min, max }))
}

function text(number: number): string {
  return number.toLocaleString('en')
}

/** A list of values separated by commas. */
export const commaSeparatedList = z
  .string()
  .transform((value) => value.split(',').map((item) => item.trim()))
  .pipe(z.array(z.string().min(1)))

export const yesOrNo = z.enum(['true', 'false']).transform((value) => value === 'true')
