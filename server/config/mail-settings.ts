import { isIP } from 'node:net'
import { z } from 'zod'
import { type Mailbox, readMailbox } from '../message/mailbox.ts'
import { parseRelayUrl, type RelayConfig } from '../smtp/relay-url.ts'
import { commaSeparatedList, numberSetting, optionalSetting, setting, wholeNumber, yesOrNo } from './setting-kinds.ts'

const hostName = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?)*$/

const host = z.string().toLowerCase().regex(hostName)

/** An IP address with an optional port, default 53. An IPv6 address with a port is in brackets. */
const dnsServer = z.string().refine((value) => {
  const [, bracketed, plain = value, port = '53'] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(value) ?? []
  return isIP(bracketed ?? plain) !== 0 && Number(port) > 0 && Number(port) <= 65_535
})

/** The settings of email. */
export const mailSettings = {
  MAIL_TRANSPORT: setting(
    {
      unit: 'name',
      default: 'capture',
      meaning:
        'How email leaves: over a relay (`relay`), straight to the recipients’ servers (`direct`), or not at all: kept and shown (`capture`).',
      allowed: '"relay", "direct" or "capture"',
    },
    z.enum(['relay', 'direct', 'capture']),
  ),
  SMTP_URL: optionalSetting(
    {
      unit: 'URL',
      default: null,
      meaning:
        'The relay, for `MAIL_TRANSPORT=relay`. A password goes over TLS only. `smtps:` is TLS from the first byte, `?tls=required` STARTTLS with a valid certificate.',
      allowed:
        'a URL such as smtp://user:password@relay.example.com:587 or smtps://relay.example.com, with what is special in the user or password percent-encoded (# is %23), and nothing behind the host but a port or, with smtp:, ?tls=required or, without a password, ?tls=opportunistic',
    },
    z.string().transform((value, context): RelayConfig => {
      const relay = parseRelayUrl(value)
      if (relay !== null) return relay
      context.addIssue('no relay')
      return z.NEVER
    }),
  ),
  MAIL_HOSTNAME: optionalSetting(
    {
      unit: 'host name',
      default: 'the name of the machine',
      meaning:
        'What the service calls itself to mail servers. Sending domains point their return path to it; `direct`, and a relay with INBOUND_SMTP_PORT, demand one with a dot; over any other relay, no domain is verified without.',
      allowed: 'a host name such as mail.example.com',
    },
    host,
  ),
  MAIL_SPF_INCLUDE: optionalSetting(
    {
      unit: 'host name',
      default: null,
      meaning:
        'Whose SPF record sending domains include, such as that of the relay. Without it, theirs allow MAIL_HOSTNAME.',
      allowed: 'a host name such as spf.example.com',
    },
    host,
  ),
  MAIL_DNS_SERVERS: optionalSetting(
    {
      unit: 'list',
      default: 'those of the system',
      meaning: 'The name servers asked for the records of domains: addresses, with a port where it is not 53.',
      allowed: 'addresses such as 127.0.0.1:5353,[::1]:5353,192.0.2.1',
    },
    commaSeparatedList.pipe(z.array(dnsServer)),
  ),
  MAIL_CONCURRENCY: numberSetting({
    unit: 'connections',
    default: 50,
    min: 1,
    max: 1_000,
    meaning: 'Connections to mail servers that this process has at most.',
  }),
  MAIL_CONNECTIONS_PER_HOST: numberSetting({
    unit: 'connections',
    default: 5,
    min: 1,
    max: 1_000,
    meaning: 'Connections to one mail server that this process has at most; fewer while it asks for less.',
  }),
  MAIL_MESSAGES_PER_CONNECTION: numberSetting({
    unit: 'messages',
    default: 100,
    min: 1,
    max: 10_000,
    meaning: 'Messages sent over one connection, which is then closed.',
  }),
  MAIL_ALLOW_PRIVATE_NETWORKS: setting(
    {
      unit: 'yes or no',
      default: 'false',
      meaning:
        'Whether `MAIL_TRANSPORT=direct` sends to mail servers with addresses that are not public: `true` or `false`.',
      allowed: '"true" or "false"',
    },
    yesOrNo,
  ),
  ACCOUNT_EMAIL_FROM: optionalSetting(
    {
      unit: 'mailbox',
      default:
        '`Postern <account@postern.test>` where email is captured by a service for this machine alone, else none',
      meaning:
        'The sender of emails to people who sign in: invitations, and links that reset a password. Without it there are none: the links are shown to the person who makes them. Needed in every process. A verified domain of any account that covers it signs them. Links begin with PUBLIC_URL, which is needed where email leaves this machine.',
      allowed: 'an address with an optional name, such as Postern <account@example.com>',
    },
    z.string().transform((value, context): Mailbox => {
      const { mailbox } = readMailbox(value)
      if (mailbox !== null) return mailbox
      context.addIssue('no mailbox')
      return z.NEVER
    }),
  ),
  CAPTURE_SMTP_PORT: numberSetting({
    unit: 'port',
    default: 0,
    min: 0,
    max: 65_535,
    meaning:
      'Where email is captured, on 127.0.0.1 alone. What other programs send there is shown to the first account. 0 takes any that is free.',
  }),
  INBOUND_SMTP_PORT: optionalSetting(
    {
      unit: 'port',
      default: null,
      meaning:
        'Where notifications about email are taken by SMTP: 25, where the return path of the domains leads to. Without it there is no such server.',
      allowed: 'a whole number from 0 to 65,535',
    },
    wholeNumber({ min: 0, max: 65_535 }),
  ),
  INBOUND_SMTP_HOST: setting(
    {
      unit: 'address',
      default: '0.0.0.0',
      meaning: 'The address of the machine that is for; `0.0.0.0` is every one.',
      allowed: 'an address or a host name of this machine',
    },
    z.string().regex(/^[\w.:%-]+$/),
  ),
  INBOUND_SMTP_TLS_CERT: optionalSetting(
    {
      unit: 'file',
      default: null,
      meaning: 'The certificate chain for STARTTLS there, PEM. Without it there is no STARTTLS.',
      allowed: 'the path of a file',
    },
    z.string(),
  ),
  INBOUND_SMTP_TLS_KEY: optionalSetting(
    { unit: 'file', default: null, meaning: 'The private key to it, PEM.', allowed: 'the path of a file' },
    z.string(),
  ),
}
