import type { IncomingMessage } from 'node:http'
import type { NextFunction, Request, Response } from 'express'
import type { RouteMetadata } from '../../contract/route.ts'
import type { Handle } from '../database/connection.ts'
import type { AuthoredScope } from '../shared/scope.ts'
import type { Caller } from './caller.ts'

/** The context of a request besides its validated input. */
export type EndpointContext = {
  /** The account and mode of the key, and who makes a change. Every use case is limited to this scope or its account. */
  scope: AuthoredScope
  caller: Caller
  /**
   * The connection of the use case: the database or, for a request with an `Idempotency-Key`, the transaction that also
   * keeps its response.
   */
  handle: Handle
  /** Waits until a large response may be read into memory. Throws `unavailable`. */
  enterLarge: () => Promise<void>
}

/** The part of a request that all routes share. Not the whole `Request`, because the type of the query differs. */
export type RouteRequest = IncomingMessage &
  Pick<Request, 'body' | 'get' | 'ip' | 'method' | 'originalUrl' | 'protocol'> & {
    tsRestRoute: { metadata: RouteMetadata }
  }

/** Admits a request to its route, or throws the reason why not. Runs before every route and before the body is read. */
export type RouteGate = (req: RouteRequest, res: Response, next: NextFunction) => void | Promise<void>

/** The part of the input that all routes share. */
export type RouteInput = { req: RouteRequest; res: Response }

/**
 * Turns a use case into a route handler: finds the caller, and keeps the response when the route is idempotent and the
 * request has an `Idempotency-Key`.
 */
export type Endpoint = <Input extends RouteInput, Answer extends { status: number; body: unknown }>(
  handler: (input: Input, context: EndpointContext) => Promise<Answer>,
) => (input: Input) => Promise<Answer>
