/** The samplers of OpenTelemetry, by their standard names. */
export const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

/** Settings of the export and sampling of spans. */
export type TracingConfig = {
  /** URL that spans are posted to. */
  endpoint: string
  /** Sent with every export. May hold a secret. */
  headers: Readonly<Record<string, string>>
  serviceName: string
  sampler: (typeof samplers)[number]
  /** Share of the traces from 0 to 1, for the samplers `traceidratio` and `parentbased_traceidratio`. */
  samplerRatio: number
}
