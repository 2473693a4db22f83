import type { Logger } from 'pino'
import { faultOfLinks } from './public-url.ts'

export type WarningOptions = {
  transport: 'relay' | 'direct' | 'capture'
  /** Whether this process works, and so sends. */
  isWorker: boolean
  /** Whether this process takes what comes back by SMTP. */
  hasInbound: boolean
  /** As `faultOfLinksIn` says. */
  linksFault: string | null
}

type Settings = {
  http: { publicUrl: string | null }
  roles: { api: boolean; worker: boolean }
  mail: { transport: WarningOptions['transport']; inbound: object | null }
}

/**
 * Why links in emails would lead nowhere with these settings; null: they lead to this service. Only for captured
 * email, and only where one process sends it and answers its links, PUBLIC_URL is not needed.
 */
export function faultOfLinksIn({ http, roles, mail }: Settings): string | null {
  if (mail.transport !== 'capture') return faultOfLinks(http.publicUrl)
  if (http.publicUrl !== null || (roles.api && roles.worker)) return null
  return 'PUBLIC_URL is not set, and with ROLES the API and the workers are processes of their own'
}

/** Logs what an operator should know at the start. */
export function warnAtStart(settings: Settings, logger: Pick<Logger, 'warn'>): void {
  const { roles, mail } = settings
  const { transport, inbound } = mail
  const linksFault = faultOfLinksIn(settings)
  const options = { transport, isWorker: roles.worker, hasInbound: inbound !== null, linksFault }
  for (const warning of warningsOf(options)) logger.warn(warning)
}

/** What an operator should know at the start about email: what is missing, and what to do. */
export function warningsOf({ transport, isWorker, hasInbound, linksFault }: WarningOptions): string[] {
  const leaves = transport !== 'capture'
  return [
    ...(linksFault === null
      ? []
      : [
          `${linksFault}: links to unsubscribe and to track would lead nowhere, so emails that track or go to an audience are refused with 422 public_url_needed; set PUBLIC_URL to the ${leaves ? 'https address' : 'address'} of this service in every process`,
        ]),
    ...(leaves && isWorker && !hasInbound
      ? [
          `INBOUND_SMTP_PORT is not set, so this process takes no bounces or complaints by SMTP: unless another process does, what comes back after MAIL_TRANSPORT=${transport} has sent it is lost, and the addresses go on being written to; set INBOUND_SMTP_PORT, and lead the MX records of the return paths there`,
        ]
      : []),
  ]
}
