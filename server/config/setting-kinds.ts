import { z } from 'zod'

/** What people are told of a setting. */
export type SettingInfo = {
  unit: string
  /** As it would be written; null when there is none. */
  default: string | null
  meaning: string
  /** Ends the sentence "must be …". */
  allowed: string
}

/** What people are told of each. */
export const about = z.registry<SettingInfo>()

/** A setting with a default, which is read like a value given. */
export function setting<T>(info: SettingInfo & { default: string }, schema: z.ZodType<T, string>) {
  return schema.prefault(info.default).register(about, info)
}

/** A setting that may be missing, read as null; `info.default` then tells what that means. */
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

/** What is written with commas between. */
export const commaSeparatedList = z
  .string()
  .transform((value) => value.split(',').map((item) => item.trim()))
  .pipe(z.array(z.string().min(1)))

export const yesOrNo = z.enum(['true', 'false']).transform((value) => value === 'true')
