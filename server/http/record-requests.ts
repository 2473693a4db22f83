import type { Request, Response } from 'express'
import type { RouteMetadata } from '../../contract/route.ts'
import type { RequestLogRecorder } from '../request-logs/recorder.ts'
import { knownCallerOf, refusedCallerOf } from './caller.ts'
import { clientAddressOf } from './client-address.ts'
import { refusalSentWith } from './errors.ts'
import { requestIdOf } from './request-id.ts'

/** A request whose route may have been found. */
type Routed = Request & { tsRestRoute?: { method: string; path: string; metadata: RouteMetadata } }

/** How a request was answered. */
type Answer = { status: number | 'aborted'; durationMs: number }

/** Notes requests of keys in the request logs. Call it when the response is closed. */
export type RecordRequest = (req: Request, res: Response, answer: Answer) => void

/**
 * Returns a function that notes requests of keys: those that succeed, and those that are refused, also because the key
 * is revoked, has expired, or must not be used from there. Not those of users, which are many for each screen of the
 * dashboard; what users send, publish, import and delete is in the audit log.
 */
export function createRequestRecorder(logs: Pick<RequestLogRecorder, 'add'>): RecordRequest {
  const routes = new Map<string, string>()
  function routeOf(path: string): string {
    const known = routes.get(path)
    if (known !== undefined) return known
    const route = path.replaceAll(/:(\w+)/g, '{$1}')
    routes.set(path, route)
    return route
  }

  return (req: Routed, res, { status, durationMs }) => {
    const caller = knownCallerOf(req) ?? refusedCallerOf(req)
    const { tsRestRoute } = req
    if (caller?.actor.type !== 'key' || tsRestRoute === undefined) return
    logs.add({
      id: requestIdOf(res),
      accountId: caller.accountId,
      mode: caller.mode,
      keyId: caller.actor.id ?? '',
      keyName: caller.actor.name,
      operationId: tsRestRoute.metadata.operationId,
      method: tsRestRoute.method,
      route: routeOf(tsRestRoute.path),
      url: req.originalUrl,
      status: status === 'aborted' ? null : status,
      durationMs,
      ipAddress: clientAddressOf(req.ip),
      refusal: refusalSentWith(res),
      body: req.body,
    })
  }
}
