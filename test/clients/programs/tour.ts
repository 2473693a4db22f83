/** Where a client finds the service. */
export type Target = { baseUrl: string; apiKey: string }

/** What a client saw on its way: a webhook created, disabled, listed, deleted and then missing. */
export type Tour = {
  id: string
  secret: string
  disabledReason: string | null
  listed: string[]
  deleteStatus: number | null
  missingCode: string | null
}
