import { once } from 'node:events'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Logger } from 'pino'
import { hasCode, messageOf } from '../lib/error-codes.ts'
import { OperatorError } from '../shared/errors.ts'
import { errorOfUnparsedRequest, noTunnels, refuse } from './parser-errors.ts'
import { mayBeSlow } from './slow-bodies.ts'

export type ListenOptions = {
  app: RequestListener
  host: string
  /** 0: any free port. */
  port: number
  logger: Logger
  /** Overrides the default limits, for tests. */
  limits?: Partial<Limits>
}

export type HttpServer = {
  address: AddressInfo
  /** URL of the server for clients on this machine. */
  url: string
  /**
   * Stops accepting connections, closes idle ones, and waits for running requests. Closes the connections that are left
   * after `deadlineMs`. Calling it again returns the same promise.
   */
  close(deadlineMs: number): Promise<void>
}

type Limits = {
  /** Time limit for all headers of a request to arrive. */
  headersTimeoutMs: number
  /** Time limit for the whole request to arrive. The response may take longer. */
  requestTimeoutMs: number
  /** Interval of checking these two limits. */
  timeoutCheckMs: number
  /** Time limit without traffic on a connection with a request. Longer than any response takes to start. */
  stallTimeoutMs: number
}

const defaultLimits: Limits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  timeoutCheckMs: 2_000,
  stallTimeoutMs: 90_000,
}

const maxHeaderBytes = 16 * 1024
const maxConnections = 10_000
/** Longer than the idle timeout of load balancers (usually 60 s), so that they close the connection first. */
const keepAliveTimeoutMs = 65_000

/** Starts to listen. Throws OperatorError with advice when the address cannot be used. */
export async function listen({ app, host, port, logger, limits }: ListenOptions): Promise<HttpServer> {
  const { headersTimeoutMs, requestTimeoutMs, timeoutCheckMs, stallTimeoutMs } = { ...defaultLimits, ...limits }
  const server = createServer({
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: timeoutCheckMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    maxHeaderSize: maxHeaderBytes,
    // The app refuses such requests itself, with an error as the contract describes it.
    requireHostHeader: false,
  })
  server.maxConnections = maxConnections
  server.timeout = stallTimeoutMs
  const traffic = trackTraffic(server, app)
  server.on('clientError', (error, socket: Socket) => {
    // The request arrives slowly, and may: nothing else is wrong.
    if (hasCode(error, 'ERR_HTTP_REQUEST_TIMEOUT') && mayBeSlow(socket, traffic.isArriving(socket))) return
    if (traffic.hasBegunAnswer(socket)) socket.destroy()
    else refuse(socket, errorOfUnparsedRequest(error, maxHeaderBytes))
  })
  server.on('connect', (_req, socket: Socket) => refuse(socket, noTunnels()))

  await bind(server, { host, port })
  server.on('error', (error) => logger.error({ err: error }, 'the HTTP server failed'))
  const address = addressOf(server)
  let closing: Promise<void> | undefined
  return {
    address,
    url: urlOf(address),
    close(deadlineMs) {
      closing ??= traffic.end(deadlineMs)
      return closing
    },
  }
}

/** Passes requests to `app`, and tracks the running requests and the open connections. */
function trackTraffic(server: Server, app: RequestListener) {
  const sockets = new Set<Socket>()
  const running = new Set<ServerResponse>()
  let isClosing = false

  function onClosedSocket(this: Socket): void {
    sockets.delete(this)
  }
  function onEndedAnswer(this: ServerResponse): void {
    running.delete(this)
    // A response that started before closing has no `Connection: close` header.
    if (isClosing) this.req.socket.destroySoon()
  }
  function onRequest(...[req, res]: Parameters<RequestListener>): void {
    running.add(res)
    res.once('close', onEndedAnswer)
    if (isClosing) res.setHeader('Connection', 'close')
    app(req, res)
  }

  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', onClosedSocket)
  })
  server.on('request', onRequest)
  // An unknown expectation may be ignored. Source: RFC 9110 §10.1.1.
  server.on('checkExpectation', onRequest)

  return {
    isArriving(socket: Socket): boolean {
      return [...running].some((res) => res.req.socket === socket && !res.req.complete)
    },
    hasBegunAnswer(socket: Socket): boolean {
      return [...running].some((res) => res.req.socket === socket && res.headersSent)
    },
    async end(deadlineMs: number): Promise<void> {
      isClosing = true
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const res of running) if (!res.headersSent) res.setHeader('Connection', 'close')
      const busy = new Set([...running].map((res) => res.req.socket))
      for (const socket of sockets) if (!busy.has(socket)) socket.destroy()
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, deadlineMs)
      await closed
      clearTimeout(deadline)
    },
  }
}

async function bind(server: Server, { host, port }: { host: string; port: number }): Promise<void> {
  try {
    server.listen({ host, port })
    await once(server, 'listening')
  } catch (error) {
    throw asOperatorError(error, host, port)
  }
}

function asOperatorError(error: unknown, host: string, port: number): unknown {
  const advice = adviceOn(error, host, port)
  return advice === null ? error : new OperatorError(advice, { cause: error })
}

function adviceOn(error: unknown, host: string, port: number): string | null {
  if (hasCode(error, 'EADDRINUSE')) {
    return `port ${port} on ${host} is in use; stop the program that uses it, or set PORT to another one`
  }
  if (hasCode(error, 'EACCES')) {
    return `port ${port} on ${host} may not be used by this user; set PORT to one above 1023`
  }
  if (hasCode(error, 'EADDRNOTAVAIL')) {
    return `${host} is not an address of this machine; set HOST to one that is, such as 127.0.0.1 or 0.0.0.0`
  }
  if (hasCode(error, 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL')) {
    return `the address ${host} cannot be used (${messageOf(error)}); set HOST to one of this machine, such as 127.0.0.1`
  }
  return null
}

function addressOf(server: Server): AddressInfo {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the HTTP server listens on no port')
  return address
}

/** Returns the URL of an address, with `localhost` for a server that listens on all addresses. */
function urlOf({ address, family, port }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return `http://localhost:${port}`
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
