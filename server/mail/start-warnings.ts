import type { Logger } from 'pino'
import { faultOfLinks } from '../public-url.ts'

export type WarningOptions = {
  transport: 'relay' | 'direct' | 'capture'
  /** Whether this process works, and so sends. */
  isWorker: boolean
  /** Whether this process takes what comes back by SMTP. */
  hasInbound: boolean
  /** The setting PUBLIC_URL; null: not set. */
  publicUrl: string | null
}

type Settings = {
  http: { publicUrl: string | null }
  roles: { worker: boolean }
  mail: { transport: WarningOptions['transport']; inbound: object | null }
}

/** Why links in emails would lead nowhere with these settings; null: they lead to this service, or are captured. */
export function faultOfLinksIn({ http, mail }: Pick<Settings, 'http' | 'mail'>): string | null {
  return mail.transport === 'capture' ? null : faultOfLinks(http.publicUrl)
}

/** Logs what an operator should know at the start. */
export function warnAtStart({ http, roles, mail }: Settings, logger: Pick<Logger, 'warn'>): void {
  const { transport, inbound } = mail
  const options = { transport, isWorker: roles.worker, hasInbound: inbound !== null, publicUrl: http.publicUrl }
  for (const warning of warningsOf(options)) logger.warn(warning)
}

/** What an operator should know at the start, because email leaves this machine: what is missing, and what to do. */
export function warningsOf({ transport, isWorker, hasInbound, publicUrl }: WarningOptions): string[] {
  if (transport === 'capture') return []
  const links = faultOfLinks(publicUrl)
  return [
    ...(links === null
      ? []
      : [
          `${links}: links to unsubscribe and to track would lead nowhere, so emails that track or go to an audience are refused with 422 public_url_needed; set PUBLIC_URL to the https address of this service in every process`,
        ]),
    ...(isWorker && !hasInbound
      ? [
          `INBOUND_SMTP_PORT is not set, so this process takes no bounces or complaints by SMTP: unless another process does, what comes back after MAIL_TRANSPORT=${transport} has sent it is lost, and the addresses go on being written to; set INBOUND_SMTP_PORT, and lead the MX records of the return paths there`,
        ]
      : []),
  ]
}
