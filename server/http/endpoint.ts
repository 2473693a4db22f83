import type { IncomingMessage } from 'node:http'
import type { NextFunction, Request, Response } from 'express'
import type { RouteMetadata } from '../../contract/route.ts'
import type { Handle } from '../database/connection.ts'
import type { Scope } from '../shared/scope.ts'

/** What a route knows of the request beyond its validated input. */
export type EndpointContext = {
  /** The account and the kind of the key. Every use case is limited to them, or to the account. */
  scope: Scope
  /**
   * Where the use case works: the database, or, for a request with an `Idempotency-Key`, the
   * transaction its answer is kept in.
   */
  handle: Handle
  /** Waits until an answer with much content may be read into memory. Throws `unavailable`. */
  enterLarge: () => Promise<void>
}

/** What is known of a request of every route. Not the whole `Request`: the query is of another type in each. */
export type RouteRequest = IncomingMessage &
  Pick<Request, 'body' | 'get' | 'ip' | 'method' | 'originalUrl'> & { tsRestRoute: { metadata: RouteMetadata } }

/** Lets a request in to its route, or throws why not. Stands before every route, and before anything is read. */
export type RouteGate = (req: RouteRequest, res: Response, next: NextFunction) => void | Promise<void>

/** What the input of every route has. */
export type RouteInput = { req: RouteRequest; res: Response }

/**
 * Turns a use case into a route: finds the caller, and keeps the answer where the route is
 * idempotent and the request carries a key.
 */
export type Endpoint = <Input extends RouteInput, Answer extends { status: number; body: unknown }>(
  handler: (input: Input, context: EndpointContext) => Promise<Answer>,
) => (input: Input) => Promise<Answer>
