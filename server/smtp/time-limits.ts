/*
 * How long servers are waited for, in milliseconds. RFC 5321 §4.5.3.2 asks for five minutes at most commands.
 * Where giving up early costs nothing but another attempt, less is enough: a conversation that hangs keeps
 * one of few places from others. Where it costs a second copy of the message, the RFC's time is given.
 */

/** For an address to answer at all. A host has others, and so has its domain. */
export const connectTimeoutMs = 20_000

/** For the greeting: servers that let strangers wait do so for half a minute or less. */
export const greetingTimeoutMs = 60_000

/** For the whole handshake. */
export const tlsTimeoutMs = 30_000

/** For EHLO, STARTTLS, AUTH, MAIL, RCPT, RSET and DATA: addresses may be looked up meanwhile. */
export const commandTimeoutMs = 120_000

/** For 64 KiB of the message to be taken. As the RFC says, §4.5.3.2.5. */
export const blockTimeoutMs = 180_000

/**
 * For all of a conversation until the message is sent whole, so that no server takes for ever by taking little
 * at a time: 20 minutes, and what it takes at 10 kB a second. The largest messages have two hours, half of
 * what an email may be worked on (server/queue/email-queue.ts).
 */
export function conversationTimeoutMs(bytes: number): number {
  return 1_200_000 + bytes / 10
}

/** For the answer to the message. As the RFC says, §4.5.3.2.6: who gives up earlier sends it twice. */
export const finalTimeoutMs = 600_000

/** The same, once the service has to stop: a part of the time that closing may take. */
export const finalTimeoutOnStopMs = 2_000

/** For the answer to QUIT: nothing depends on it but the time that closing takes. */
export const quitTimeoutMs = 1_000
