/** Responses stored for requests with an `Idempotency-Key`. */
export type IdempotencyKeysTable = {
  account_id: string
  key: string
  /** SHA-256 of method, path and body. */
  fingerprint: Buffer
  /** Null while the first request is running. */
  response_status: number | null
  /** Encrypted, since a response may contain a secret. */
  response_body: Buffer | null
  created_at: Date
}

/** Requests counted in one window of one account. Processes lease requests from it. */
export type RateLimitWindowsTable = {
  account_id: string
  window_start: Date
  used: number
}

/** Facts about this database, such as the fingerprint of its encryption key. */
export type SettingsTable = {
  name: string
  value: string
}
