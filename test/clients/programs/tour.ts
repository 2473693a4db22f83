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

/** A program of one client. */
export type Program = {
  tour(target: Target): Promise<Tour>
  /** Adds a subscriber, and says what the listed events of new subscribers are about. */
  addSubscriber(target: Target, email: string): Promise<string[]>
  /** What the body of a delivery is about. */
  subjectOfPushed(body: string): string
}
