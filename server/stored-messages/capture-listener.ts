import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { listenSmtp, type SmtpListener } from '../smtp-listener/listener.ts'
import { createCaptureStore } from './capture-store.ts'

/** The SMTP server of this service that stores messages instead of sending them on. */
export type CaptureSink = SmtpListener

export type CaptureSinkOptions = {
  db: Db
  /** 0: any free port. */
  port: number
  clock: Clock
  logger: Logger
  /** Reads the id of an email from a return path of this service; null: it is not one. */
  readReturnPath: (address: string) => string | null
}

/** Only reachable from this machine, because it accepts every message. */
const host = '127.0.0.1'
export const maxCapturedBytes = 64 * 2 ** 20
/** Maximum connections: those of the worker, and some for other programs on a developer's machine. */
const maxConnections = 500
const maxRecipients = 1_000

/**
 * Starts the SMTP server of the capture transport. It replies 250 to a message once it is committed to
 * `captured_messages`. Throws OperatorError when it cannot listen on the port.
 */
export async function startCaptureSink({
  db,
  port,
  clock,
  logger,
  readReturnPath,
}: CaptureSinkOptions): Promise<CaptureSink> {
  const onError = (error: unknown) =>
    logger.error({ err: error }, 'deleting old captured messages failed; trying again')
  const store = createCaptureStore({ db, clock, readReturnPath, onError })
  try {
    const listener = await listenSmtp({
      host,
      port,
      portSetting: 'CAPTURE_SMTP_PORT',
      name: 'capture.postern.test',
      tls: null,
      maxMessageBytes: maxCapturedBytes,
      maxRecipients,
      maxConnections,
      acceptsRecipient: () => true,
      onMessage: store.add,
      clock,
      logger,
    })
    return {
      ...listener,
      async close(deadlineMs) {
        await listener.close(deadlineMs)
        await store.close()
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}
