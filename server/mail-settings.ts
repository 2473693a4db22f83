import { isIP } from 'node:net'
import { z } from 'zod'
import { list, optionalSetting, setting } from './setting-kinds.ts'

const hostName = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?)*$/

const host = z.string().toLowerCase().regex(hostName)

/** With the port it has or, where it has none, that of the DNS; an IPv6 address with a port is in brackets. */
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
  MAIL_HOSTNAME: optionalSetting(
    {
      unit: 'host name',
      default: 'the name of the machine',
      meaning: 'What the service calls itself to mail servers. Sending domains point their return path to it.',
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
    list.pipe(z.array(dnsServer)),
  ),
}
