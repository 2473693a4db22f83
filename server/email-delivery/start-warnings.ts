import type { Logger } from 'pino'
import { faultOfLinksIn, type LinkSettings } from './link-faults.ts'

export type WarningOptions = {
  transport: 'relay' | 'direct' | 'capture'
  /** True when this process is a worker, and so sends email. */
  isWorker: boolean
  /** True when this process receives bounces and complaints by SMTP. */
  hasInbound: boolean
  /** The result of `faultOfLinksIn`. */
  linksFault: string | null
}

type Settings = LinkSettings & { mail: { inbound: object | null } }

/** Logs warnings about the email settings at the start. */
export function warnAtStart(settings: Settings, logger: Pick<Logger, 'warn'>): void {
  const { roles, mail } = settings
  const { transport, inbound } = mail
  const linksFault = faultOfLinksIn(settings)
  const options = { transport, isWorker: roles.worker, hasInbound: inbound !== null, linksFault }
  for (const warning of warningsOf(options)) logger.warn(warning)
}

/** Returns the warnings about the email settings: what is missing, and what to do. */
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
          `INBOUND_SMTP_PORT is not set, so this process receives no bounces or complaints by SMTP: unless another process does, reports about email sent with MAIL_TRANSPORT=${transport} are lost, and the service goes on sending to addresses that bounce or complain; set INBOUND_SMTP_PORT, and point the MX records of the return paths to it`,
        ]
      : []),
  ]
}
