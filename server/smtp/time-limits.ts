/*
 * Timeouts of the SMTP client, in milliseconds. RFC 5321 §4.5.3.2 asks for five minutes for most commands. Where an
 * early timeout costs only another attempt, ours are shorter, because a conversation that hangs occupies one of few
 * connections. Where it may cost a second copy of the message, the time of the RFC is used.
 */

/** For connecting to an address. Short, because the host and its domain may have other addresses. */
export const connectTimeoutMs = 20_000

/** For the greeting. Servers that delay it for unknown clients do so for half a minute or less. */
export const greetingTimeoutMs = 60_000

/** For the whole TLS handshake. */
export const tlsTimeoutMs = 30_000

/** For EHLO, STARTTLS, AUTH, MAIL, RCPT, RSET and DATA: servers may look up addresses meanwhile. */
export const commandTimeoutMs = 120_000

/** For sending 64 KiB of the message. Source: RFC 5321 §4.5.3.2.5. */
export const blockTimeoutMs = 180_000

/**
 * Returns the time for a conversation until the whole message is sent, so that a slow server cannot hold it forever:
 * 20 minutes, plus the transfer time at 10 kB per second. The largest messages get two hours, half of the time limit
 * for a claimed email (server/queue/email-queue.ts).
 */
export function conversationTimeoutMs(bytes: number): number {
  return 1_200_000 + bytes / 10
}

/** For the reply to the message. A shorter timeout would send duplicates. Source: RFC 5321 §4.5.3.2.6. */
export const finalTimeoutMs = 600_000

/** For the reply to the message when the service stops: part of the shutdown time. */
export const finalTimeoutOnStopMs = 2_000

/** For the reply to QUIT. Only the time of closing depends on it. */
export const quitTimeoutMs = 1_000
