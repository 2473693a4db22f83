/** How traces are sampled, as OpenTelemetry names it. */
export const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

/** Where spans go, and which are recorded. */
export type TracingConfig = {
  /** The URL they are posted to. */
  endpoint: string
  /** Sent with every export. May hold a secret. */
  headers: Readonly<Record<string, string>>
  serviceName: string
  sampler: (typeof samplers)[number]
  /** From 0 to 1; of the samplers that take a part of the traces. */
  samplerRatio: number
}
