import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { listenSmtp, type SmtpListener } from '../smtp-listener/listener.ts'
import { createCaptureStore } from './capture-store.ts'

/** The SMTP server inside the service that keeps what is sent to it, instead of sending it on. */
export type CaptureSink = SmtpListener

export type CaptureSinkOptions = {
  db: Db
  /** 0: any free port. */
  port: number
  clock: Clock
  logger: Logger
  /** Reads the identifier of an email out of a return path of ours. */
  readReturnPath: (address: string) => string | null
}

/** Nobody else may reach it: it takes whatever it is given. */
const host = '127.0.0.1'
export const maxCapturedBytes = 64 * 2 ** 20
/** The worker's connections, and some for the programs of whoever develops. */
const maxConnections = 500
const maxRecipients = 1_000

/**
 * Starts the sink of the capture transport. A message is answered 250 once it is committed to
 * `captured_messages`. Throws OperatorError when the port cannot be had.
 */
export async function startCaptureSink({
  db,
  port,
  clock,
  logger,
  readReturnPath,
}: CaptureSinkOptions): Promise<CaptureSink> {
  const onError = (error: unknown) => logger.error({ err: error }, 'old captured messages could not be deleted')
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
