import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Signers } from '../email-delivery/signers.ts'
import type { Clock } from '../lib/clock.ts'
import { startLoop } from '../lib/polling-loop.ts'
import { timeout } from '../lib/timer.ts'
import { type Mailbox, readMailbox } from '../message/mailbox.ts'
import type { Outcome, Transport } from '../smtp/transport.ts'
import type {
  AccountEmail,
  AccountEmailKind,
  AccountEmailService,
  AttemptOutcome,
  ClaimedAccountEmail,
} from '../users/account-emails.ts'
import { composeAccountEmail } from './compose.ts'

export type AccountEmailWorkerOptions = {
  db: Db
  clock: Clock
  logger: Pick<Logger, 'warn' | 'error'>
  emails: Pick<AccountEmailService, 'claim'>
  transport: Pick<Transport, 'destinationOf' | 'send'>
  signers: Signers
  from: Mailbox
  /** Returns the verified domain that covers a domain name, of any account; null: there is none. */
  findDomain: (name: string) => Promise<{ id: string; returnPath: string } | null>
  pollIntervalMs: number
}

export type AccountEmailWorker = {
  /** Makes the worker look for emails now. */
  wake(): void
  /** Claims no more, waits up to `deadlineMs` for what is being sent, then aborts it. It is tried again later. */
  stop(deadlineMs: number): Promise<void>
}

/** Emails of each kind that are sent at once, so that invitations never delay resets. */
const atOnce = 8
/** Time limit of a conversation, so that a server that hangs holds its place for no longer. Milliseconds. */
const conversationMs = 30_000
const kinds: readonly AccountEmailKind[] = ['password_reset', 'invitation']

/** Starts the loop that sends the emails of the service to people who sign in. */
export function startAccountEmailWorker(options: AccountEmailWorkerOptions): AccountEmailWorker {
  const { db, clock, logger, emails, transport, signers, from, findDomain, pollIntervalMs } = options
  const running = new Map<ClaimedAccountEmail, Promise<void>>()
  const aborting = new AbortController()

  const loop = startLoop({
    intervalMs: pollIntervalMs,
    onError: (error) => logger.error({ err: error }, 'claiming emails to users failed; trying again'),
    async run() {
      for (const kind of kinds) {
        const underWay = [...running.keys()].filter((one) => one.kind === kind)
        const limit = atOnce - underWay.length
        if (limit === 0) continue
        const claimed = await emails.claim(db, { kind, limit, busy: underWay.map(({ sender }) => sender) })
        for (const one of claimed) run(one)
      }
      // A free place wakes the loop.
      return false
    },
  })

  function run(one: ClaimedAccountEmail): void {
    const ending = attempt(one)
      .catch((error) => logger.error({ err: error }, 'sending an email to a user failed; trying again'))
      .finally(() => {
        running.delete(one)
        loop.wake()
      })
    running.set(one, ending)
  }

  async function attempt(one: ClaimedAccountEmail): Promise<void> {
    const email = await one.prepare()
    if (email === null) return
    const { kind, linkId } = email
    const { outcome, reason } = await send(email).catch((error) => {
      logger.error({ err: error, kind, linkId }, 'an email to a user could not be sent; trying again')
      return { outcome: 'later' as const, reason: null }
    })
    if (reason !== null) logger.warn({ kind, linkId, reason, outcome }, 'an email to a user was not taken')
    await one.settle(outcome)
  }

  async function send(email: AccountEmail): Promise<Attempted> {
    const { mailbox, fault } = readMailbox(email.to)
    if (mailbox === null) return { outcome: 'failed', reason: fault }
    const domain = await findDomain(from.domain)
    const signer = domain === null ? null : await signers.of(domain.id)
    const message = await composeAccountEmail(email, { from, signer, at: clock.now() })
    const [result] = await transport.send(
      {
        lane: 'single',
        destination: transport.destinationOf(mailbox.domain),
        // At the return path of a domain, whose SPF record allows this service.
        mailFrom:
          domain === null
            ? from.address
            : `${from.address.slice(0, from.address.lastIndexOf('@'))}@${domain.returnPath}`,
        recipients: [{ position: 0, address: mailbox.address }],
        message,
      },
      AbortSignal.any([aborting.signal, AbortSignal.timeout(conversationMs)]),
    )
    if (result === undefined) throw new Error('the transport returned no outcome')
    return attempted(result)
  }

  return {
    wake: () => loop.wake(),
    async stop(deadlineMs) {
      await loop.stop()
      await Promise.race([Promise.all(running.values()), timeout(deadlineMs)])
      aborting.abort()
      await Promise.all(running.values())
    },
  }
}

type Attempted = { outcome: AttemptOutcome; reason: string | null }

function attempted(result: Outcome): Attempted {
  switch (result.kind) {
    case 'accepted':
      return { outcome: 'sent', reason: null }
    case 'deferred':
      return { outcome: 'later', reason: result.reason }
    case 'bounced':
      return { outcome: 'failed', reason: result.reason }
  }
}
