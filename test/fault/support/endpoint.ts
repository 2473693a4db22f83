import { addToCount } from '../../../server/lib/count-map.ts'
import { type Behaviour, type Receiver, startReceiver } from '../../support/receiver.ts'

/** A receiver that counts the requests that are in flight at the same time. */
export type Endpoint = Receiver & {
  /** The most that were in flight at one URL at once; by default at all of them together. */
  mostAtOnce(url?: string): number
}

export async function startEndpoint(behaviour: Behaviour): Promise<Endpoint> {
  const receiver = await startReceiver()
  const inFlight = new Map<string, number>()
  const most = new Map<string, number>()

  function change(url: string, by: 1 | -1): void {
    const count = addToCount(inFlight, url, by)
    most.set(url, Math.max(count, most.get(url) ?? 0))
  }

  function respond(next: Behaviour): void {
    receiver.respond((exchange) => {
      const { request, response } = exchange
      const urls = ['', `http://${request.headers.host}${request.url}`]
      for (const url of urls) change(url, 1)
      response.once('close', () => {
        for (const url of urls) change(url, -1)
      })
      next(exchange)
    })
  }
  respond(behaviour)

  return { ...receiver, respond, mostAtOnce: (url = '') => most.get(url) ?? 0 }
}
