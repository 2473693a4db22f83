import type { Logger } from 'pino'
import { textOfReply } from '../smtp/reply.ts'
import type { SessionError } from '../smtp/session.ts'

/**
 * Returns a function that logs when the relay stops being usable and when it is usable again, once each. It is called
 * for each message: with the error, or with null if the relay could be talked to.
 */
export function tellOfRelay(
  relay: { host: string; port: number },
  logger: Pick<Logger, 'warn' | 'info'>,
): (error: SessionError | null) => void {
  const name = `the mail relay ${relay.host}:${relay.port}`
  let isAway = false
  return (error) => {
    if (error !== null && !isAway) {
      const { message: reason, reply } = error
      logger.warn(
        { reason, reply: reply === null ? null : textOfReply(reply) },
        `${name} cannot be used; emails wait in their order until it can, however long that takes. Check SMTP_URL, and that the relay can be reached from here`,
      )
    }
    if (error === null && isAway) logger.info(`${name} can be used again`)
    isAway = error !== null
  }
}
