import { answer, type Behaviour, type Receiver, startReceiver } from '../../support/receiver.ts'

/** A delivery as it arrived. */
export type Arrival = {
  /** The path of the webhook's URL: tells the webhooks of one recorder apart. */
  path: string
  eventId: string
  body: string
  /** Whether it was answered with 2xx, to the last byte. */
  taken: boolean
}

/** A receiver that keeps book of every delivery, and of how it was answered. */
export type Recorder = AsyncDisposable & {
  url: string
  arrivals: readonly Arrival[]
  /** How requests are answered from now on. Default: 200 at once. */
  respond(behaviour: Behaviour): void
  /** Resolves when `count` requests have arrived in all. Rejects after `patienceMs`. */
  received: Receiver['received']
}

export async function startRecorder(): Promise<Recorder> {
  const receiver = await startReceiver()
  const arrivals: Arrival[] = []
  let behaviour = answer(200)
  receiver.respond((exchange) => {
    const { request, response } = exchange
    const arrival: Arrival = {
      path: request.url,
      eventId: request.headers['webhook-id'] ?? '',
      body: request.body.toString(),
      taken: false,
    }
    arrivals.push(arrival)
    response.once('finish', () => {
      arrival.taken = response.statusCode >= 200 && response.statusCode < 300
    })
    behaviour(exchange)
  })
  return {
    url: receiver.url,
    arrivals,
    respond(next) {
      behaviour = next
    },
    received: receiver.received,
    [Symbol.asyncDispose]: () => receiver.stop(),
  }
}
