import { onTestFinished } from 'vitest'
import {
  createExchange,
  type Exchange,
  type ExchangeOptions,
  type ExchangeOutcome,
} from '../../../server/webhook-delivery/attempt/exchange.ts'

export const now = new Date('2026-03-01T09:30:00.000Z')
const openPolicy = { allowHttp: true, allowPrivateNetworks: true }
export const strictPolicy = { allowHttp: true, allowPrivateNetworks: false }

/** An exchange that is closed when the test ends. Default: private networks allowed, as the receivers are. */
export function testExchange(options: Partial<ExchangeOptions> = {}): Exchange {
  const exchange = createExchange({ policy: openPolicy, clock: { now: () => now }, ...options })
  onTestFinished(() => exchange.close())
  return exchange
}

/** Posts something small. */
export function post(exchange: Exchange, url: string, signal?: AbortSignal): Promise<ExchangeOutcome> {
  return exchange.send({ url, headers: { 'content-type': 'application/json' }, body: '{"id":"evt_1"}' }, signal)
}
