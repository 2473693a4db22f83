import { hostname } from 'node:os'
import { describe, expect, test } from 'vitest'
import { readCommandConfig, readConfig, readServiceUrl, warningsOfRetiredSettings } from '../../server/config/config.ts'
import { settingsTable } from '../../server/config/settings.ts'
import { faultOf } from '../support/settings.ts'

const key = Buffer.alloc(32, 7).toString('base64')

test('an empty environment runs everything on the embedded database', () => {
  expect(readConfig({})).toEqual({
    http: {
      host: '127.0.0.1',
      port: 3000,
      publicUrl: null,
      maxBodyBytes: 1_048_576,
      maxEmailBodyBytes: 62_914_560,
      trustProxy: 0,
      authFailuresPerMinute: 60,
      portalOrigins: [],
    },
    database: { kind: 'embedded', dataDir: '.postern/', poolSize: 10 },
    encryptionKey: null,
    roles: { api: true, worker: true },
    rateLimits: { free: 120, pro: 3000, scale: 30_000 },
    requestLogs: true,
    retentionMs: 30 * 24 * 3_600_000,
    identityProvider: null,
    statisticsMs: 400 * 24 * 3_600_000,
    webhooks: { allowPrivateNetworks: true, allowHttp: true, maxPerAccount: 1_000, maxPerCustomer: 20 },
    portal: { accentColor: null, colorScheme: 'auto' },
    delivery: { places: 1_024, endpointMax: 64 },
    mail: {
      transport: 'capture',
      relay: null,
      concurrency: 50,
      connectionsPerHost: 5,
      messagesPerConnection: 100,
      allowPrivateNetworks: false,
      hostname: hostname().toLowerCase(),
      spfInclude: null,
      dnsServers: null,
      accountEmailFrom: { name: 'Postern', address: 'account@postern.test', domain: 'postern.test' },
      capturePort: 0,
      inbound: null,
    },
    logLevel: 'info',
    shutdownTimeoutSeconds: 30,
    tracing: null,
  })
})

test('an empty environment is the same as one of empty variables', () => {
  const empty = Object.fromEntries(settingsTable.map(({ name }) => [name, '']))
  expect(readConfig(empty)).toEqual(readConfig({}))
})

test('an empty environment is the same as one that gives the defaults of the table', () => {
  const written = settingsTable.filter(({ default: value }) => value !== null && /^[\w.,=/-]+$/.test(value))
  const given = Object.fromEntries(written.map(({ name, default: value }) => [name, value ?? '']))
  expect(written.length).toBeGreaterThan(10)
  expect(readConfig(given)).toEqual(readConfig({}))
})

describe('the embedded database opens private networks to webhooks', () => {
  const isOpen = (env: Record<string, string>) => readConfig(env).webhooks.allowPrivateNetworks

  test.each<Record<string, string>>([
    {},
    { HOST: 'localhost' },
    { HOST: '::1' },
    { HOST: '127.0.0.2', PUBLIC_URL: 'http://localhost:3000' },
    { PUBLIC_URL: 'http://127.0.0.1:8080' },
    { PUBLIC_URL: 'https://mail.shop.test' },
    { PUBLIC_URL: 'http://192.168.1.5' },
  ])('webhooks may lead to private networks where nobody outside can reach the service: %o', (env) => {
    expect(isOpen(env)).toBe(true)
  })

  test.each<Record<string, string>>([
    { HOST: '0.0.0.0' },
    { HOST: '::' },
    { HOST: '192.168.1.5' },
    { HOST: 'vm' },
    { PUBLIC_URL: 'https://mail.example.com' },
    { PUBLIC_URL: 'https://mail.example.com.' },
    { PUBLIC_URL: 'https://1.1.1.1' },
    { HOST: '127.0.0.1', PUBLIC_URL: 'https://[2606:4700:4700::1111]' },
  ])('webhooks may not lead to private networks where others can reach the service: %o', (env) => {
    expect(isOpen(env)).toBe(false)
    expect(isOpen({ ...env, WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true' })).toBe(true)
  })
})

const env = { DATABASE_URL: 'postgres://ann:hush@db.example/mail', ENCRYPTION_KEY: key }

test('a database of the operator closes private networks and http to webhooks, unless they are opened', () => {
  expect(readConfig(env).webhooks).toMatchObject({ allowPrivateNetworks: false, allowHttp: false })
  const opened = { WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true', WEBHOOK_ALLOW_HTTP: 'true' }
  expect(readConfig({ ...env, ...opened }).webhooks).toMatchObject({ allowPrivateNetworks: true, allowHttp: true })
})

test('a database of the operator needs an encryption key, and is told how to make one', () => {
  expect(readConfig(env).encryptionKey).toEqual(Buffer.alloc(32, 7))
  expect(faultOf({ DATABASE_URL: env.DATABASE_URL })).toMatch(
    /^ENCRYPTION_KEY is needed with DATABASE_URL: make one with "openssl rand -base64 32"/,
  )
})

test('a database of the operator is all a command needs', () => {
  expect(readCommandConfig({ DATABASE_URL: env.DATABASE_URL, PORT: 'none of its business' })).toEqual({
    database: { kind: 'external', url: env.DATABASE_URL, poolSize: 10 },
    rateLimits: { free: 120, pro: 3000, scale: 30_000 },
  })
})

test.each([
  [{}, 'http://localhost:3000'],
  [{ HOST: '0.0.0.0', PORT: '8080' }, 'http://localhost:8080'],
  [{ HOST: '192.0.2.7' }, 'http://192.0.2.7:3000'],
  [{ HOST: '0.0.0.0', PUBLIC_URL: 'https://mail.example.com' }, 'https://mail.example.com'],
])('with %j the links of a command begin with %s', (given, url) => {
  expect(readServiceUrl(given)).toBe(url)
})

describe('what is given', () => {
  test('settings that are given are read', () => {
    const config = readConfig({
      HOST: '::1',
      PORT: '0',
      PUBLIC_URL: 'https://mail.example.com/postern/',
      DATA_DIR: '/var/lib/my data',
      ENCRYPTION_KEY: key,
      ROLES: ' worker ',
      RATE_LIMITS: 'scale=5, tiny=1',
      REQUEST_LOGS: 'false',
      RETENTION_DAYS: '0.5',
      STATISTICS_DAYS: '90',
      WEBHOOK_ALLOW_HTTP: 'false',
      MAX_WEBHOOKS_PER_ACCOUNT: '250',
      MAX_WEBHOOKS_PER_CUSTOMER: '5',
      PORTAL_ORIGINS: 'https://app.example.com, https://*.shop.example:8443',
      PORTAL_ACCENT_COLOR: '#0f766e',
      PORTAL_COLOR_SCHEME: 'dark',
      TRUST_PROXY: '2',
      MAIL_HOSTNAME: 'Mail.Example.com',
      MAIL_DNS_SERVERS: '127.0.0.1:5353, [::1]:5353, ::1',
    })
    expect(config.http).toMatchObject({
      host: '::1',
      port: 0,
      publicUrl: 'https://mail.example.com/postern',
      trustProxy: 2,
    })
    expect(config.database).toMatchObject({ dataDir: '/var/lib/my data' })
    expect(config.roles).toEqual({ api: false, worker: true })
    expect(config.rateLimits).toEqual({ free: 120, pro: 3000, scale: 5, tiny: 1 })
    expect(config.requestLogs).toBe(false)
    expect(config.retentionMs).toBe(12 * 3_600_000)
    expect(config.statisticsMs).toBe(90 * 24 * 3_600_000)
    expect(config.mail).toMatchObject({
      hostname: 'mail.example.com',
      dnsServers: ['127.0.0.1:5353', '[::1]:5353', '::1'],
    })
    expect(config.webhooks).toEqual({
      allowPrivateNetworks: false,
      allowHttp: false,
      maxPerAccount: 250,
      maxPerCustomer: 5,
    })
    expect(config.http.portalOrigins).toEqual(['https://app.example.com', 'https://*.shop.example:8443'])
    expect(config.portal).toEqual({ accentColor: '#0f766e', colorScheme: 'dark' })
  })

  test('the settings give a mail server for what comes back where there is a port, with TLS where there are both files', () => {
    const files = { INBOUND_SMTP_TLS_CERT: '/etc/tls/mail.pem', INBOUND_SMTP_TLS_KEY: '/etc/tls/mail.key' }
    expect(readConfig({ INBOUND_SMTP_PORT: '25' }).mail.inbound).toEqual({ host: '0.0.0.0', port: 25, tls: null })
    expect(readConfig({ INBOUND_SMTP_PORT: '2525', INBOUND_SMTP_HOST: '::', ...files }).mail.inbound).toEqual({
      host: '::',
      port: 2525,
      tls: { certFile: '/etc/tls/mail.pem', keyFile: '/etc/tls/mail.key' },
    })
    expect(readConfig(files).mail.inbound).toBeNull()
    const half = { INBOUND_SMTP_PORT: '25', INBOUND_SMTP_TLS_CERT: '/etc/tls/mail.pem' }
    expect(faultOf(half)).toMatch(/^INBOUND_SMTP_TLS_CERT and INBOUND_SMTP_TLS_KEY are needed together/)
  })

  test.each([
    ['HOST', 'two words'],
    ['PORT', '65536'],
    ['PORT', '80a'],
    ['PORT', '-1'],
    ['PORT', '1e3'],
    ['PUBLIC_URL', 'mail.example.com'],
    ['PUBLIC_URL', 'https://mail.example.com/?a=b'],
    ['ROLES', 'api,mailer'],
    ['ROLES', ','],
    ['RATE_LIMITS', 'free'],
    ['RATE_LIMITS', 'free=0'],
    ['RATE_LIMITS', 'free=1.5'],
    ['REQUEST_LOGS', '1'],
    ['RETENTION_DAYS', '0'],
    ['RETENTION_DAYS', 'forever'],
    ['STATISTICS_DAYS', '0'],
    ['WEBHOOK_ALLOW_PRIVATE_NETWORKS', 'yes'],
    ['WEBHOOK_ALLOW_HTTP', '1'],
    ['MAX_WEBHOOKS_PER_ACCOUNT', '0'],
    ['MAX_WEBHOOKS_PER_CUSTOMER', '0'],
    ['PORTAL_ORIGINS', '*'],
    ['PORTAL_ORIGINS', 'https://app.example.com/page'],
    ['PORTAL_ORIGINS', "https://app.example.com; script-src 'unsafe-inline'"],
    ['PORTAL_ORIGINS', 'http:'],
    ['PORTAL_ACCENT_COLOR', 'red'],
    ['PORTAL_COLOR_SCHEME', 'grey'],
    ['DELIVERY_PLACES', '0'],
    ['ENDPOINT_MAX_IN_FLIGHT', '0'],
    ['DATABASE_POOL_SIZE', '1'],
    ['MAX_BODY_BYTES', '1 MiB'],
    ['LOG_LEVEL', 'loud'],
    ['TRUST_PROXY', 'true'],
    ['AUTH_FAILURES_PER_MINUTE', '0'],
    ['SHUTDOWN_TIMEOUT_SECONDS', '36'],
    ['MAIL_TRANSPORT', 'sendmail'],
    ['MAIL_HOSTNAME', 'mail example'],
    ['MAIL_HOSTNAME', 'mail.example.com:25'],
    ['MAIL_SPF_INCLUDE', 'include:spf.example.com'],
    ['MAIL_DNS_SERVERS', 'dns.example.com'],
    ['MAIL_DNS_SERVERS', '127.0.0.1:70000'],
    ['MAIL_CONCURRENCY', '0'],
    ['MAIL_CONNECTIONS_PER_HOST', '0'],
    ['MAIL_MESSAGES_PER_CONNECTION', 'all'],
    ['MAIL_ALLOW_PRIVATE_NETWORKS', 'yes'],
    ['CAPTURE_SMTP_PORT', '65536'],
    ['INBOUND_SMTP_PORT', 'smtp'],
    ['INBOUND_SMTP_HOST', 'two words'],
    ['OTEL_SERVICE_NAME', 'a'.repeat(256)],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.01'],
    ['OTEL_TRACES_SAMPLER_ARG', '-0'],
  ])('%s=%s is refused, with what is allowed', (name, value) => {
    const { allowed } = settingsTable.find((setting) => setting.name === name) ?? { allowed: 'no such setting' }
    expect(faultOf({ [name]: value })).toBe(`${name} is "${value}", but must be ${allowed}`)
  })

  test('a faulty setting is told in one line, however many faults and lines it has', () => {
    const fault = faultOf({ PORT: '1\n2', LOG_LEVEL: 'loud' })
    expect(fault).toMatch(/^PORT is "1\\n2", but must be .*; LOG_LEVEL is "loud", but must be /)
    expect(fault).not.toContain('\n')
  })

  test.each(['postgres://ann%zz@db.example/mail', 'postgres://db.example/%ff'])(
    'a database URL may be like %s',
    (url) => {
      expect(faultOf({ DATABASE_URL: url, ENCRYPTION_KEY: key })).toMatch(
        /^DATABASE_URL must be a URL such as postgres:/,
      )
    },
  )

  test('a faulty setting is not told when it is a secret', () => {
    const fault = faultOf({ DATABASE_URL: 'mysql://ann:hush@db.example/mail', ENCRYPTION_KEY: 'c2hvcnQ=' })
    expect(fault).toContain('DATABASE_URL must be a URL such as postgres://')
    expect(fault).toContain('ENCRYPTION_KEY must be 32 bytes in base64')
    expect(fault).not.toMatch(/hush|c2hvcnQ/)
  })
})

const inbound = { MAIL_TRANSPORT: 'relay', SMTP_URL: 'smtp://relay.example', INBOUND_SMTP_PORT: '25' }

test.each([{ MAIL_TRANSPORT: 'direct' }, inbound])(
  'the name of the service in the records of domains must be one others can find for %j',
  (env) => {
    expect(faultOf(env, 'vm')).toMatch(/^MAIL_HOSTNAME is needed .*: the name of this machine, "vm", has no dot, /)
    expect(faultOf({ ...env, MAIL_HOSTNAME: 'mx' }, 'vm.example.com')).toMatch(/^MAIL_HOSTNAME is "mx", .* dot/)
    expect(readConfig(env, 'VM.example.com').mail.hostname).toBe('vm.example.com')
    expect(readConfig({ ...env, MAIL_HOSTNAME: 'mx.example.com' }, 'vm').mail.hostname).toBe('mx.example.com')
  },
)

test('the name of the service in the records of domains may be any where nothing is sent to it and nothing sent by it', () => {
  expect(readConfig({}, 'vm').mail.hostname).toBe('vm')
  expect(readConfig({ ...inbound, INBOUND_SMTP_PORT: '' }, 'vm').mail.hostname).toBe('vm')
})

const senderOf = (env: Record<string, string>) => readConfig(env, 'mail.example.com').mail.accountEmailFrom
const leaving = { MAIL_TRANSPORT: 'direct', PUBLIC_URL: 'https://mail.example.com' }
const given = { ACCOUNT_EMAIL_FROM: 'Shop <account@example.com>' }
const shop = { name: 'Shop', address: 'account@example.com', domain: 'example.com' }

test.each<Record<string, string>>([{}, { HOST: 'localhost' }, { PUBLIC_URL: 'http://localhost:8080' }])(
  'the sender of emails to users has a default where email is captured for this machine alone: %o',
  (env) => {
    expect(senderOf(env)?.address).toBe('account@postern.test')
    expect(senderOf({ ...env, ...given })).toEqual(shop)
  },
)

test.each<Record<string, string>>([
  { HOST: '0.0.0.0' },
  { PUBLIC_URL: 'http://192.168.1.5' },
  { PUBLIC_URL: 'https://mail.example.com' },
  leaving,
])(
  'the sender of emails to users has no default where others could read the captured links, or email leaves: %o',
  (env) => {
    expect(senderOf(env)).toBeNull()
    expect(senderOf({ ...env, ...given })).toEqual(shop)
  },
)

test('the sender of emails to users has no default in a process that is an API or a worker alone', () => {
  expect(senderOf({ ROLES: 'api' })).toBeNull()
})

test.each<Record<string, string>>([{ ...leaving, PUBLIC_URL: '' }, { ROLES: 'worker' }])(
  'the sender of emails to users needs PUBLIC_URL where links would lead nowhere without: %o',
  (env) => {
    expect(faultOf({ ...env, ...given }, 'mail.example.com')).toMatch(/^PUBLIC_URL is needed with ACCOUNT_EMAIL_FROM/)
    expect(senderOf({ ...env, ...given, PUBLIC_URL: 'https://mail.example.com' })).toEqual(shop)
  },
)

test('the sender of emails to users is refused when it is no address', () => {
  expect(faultOf({ ACCOUNT_EMAIL_FROM: 'Shop' })).toMatch(/^ACCOUNT_EMAIL_FROM is "Shop", but must be an address /)
})

test('a relay is read from its URL', () => {
  const { mail } = readConfig({ MAIL_TRANSPORT: 'relay', SMTP_URL: 'smtp://ann:hush@relay.example' })
  expect(mail).toMatchObject({
    transport: 'relay',
    relay: { host: 'relay.example', port: 587, tls: 'verified', credentials: { user: 'ann', password: 'hush' } },
  })
})

test('a relay has to be given to send over one', () => {
  expect(faultOf({ MAIL_TRANSPORT: 'relay' })).toMatch(/^SMTP_URL is needed with MAIL_TRANSPORT=relay: /)
})

test('a relay is not passed over in silence by another transport', () => {
  const fault = 'SMTP_URL is given, but only MAIL_TRANSPORT=relay sends over it: set that too, or leave SMTP_URL out'
  expect(faultOf({ SMTP_URL: 'smtp://ann:hush@relay.example' })).toBe(fault)
  const env = { MAIL_TRANSPORT: 'direct', MAIL_HOSTNAME: 'mail.example.com', SMTP_URL: 'smtp://relay.example' }
  expect(faultOf(env)).toBe(fault)
})

test('a relay is told what its URL may have when it is refused', () => {
  const fault = faultOf({ MAIL_TRANSPORT: 'relay', SMTP_URL: 'smtp://ann:hush@relay.example?tls=requird' })
  expect(fault).toContain('?tls=required')
  expect(fault).toContain('percent-encoded')
})

test.each([
  'relay.example:hush',
  'http://ann:hush@relay.example',
  'smtp://ann:hush@relay.example?tls=opportunistic',
  'smtp://ann:hu#sh@relay.example',
])('a relay is refused with the URL %s, which is not told', (url) => {
  const { allowed } = settingsTable.find(({ name }) => name === 'SMTP_URL') ?? { allowed: 'no such setting' }
  expect(faultOf({ MAIL_TRANSPORT: 'relay', SMTP_URL: url })).toBe(`SMTP_URL must be ${allowed}`)
})

test('settings that lost their meaning are told with what took their place, where they are set', () => {
  expect(warningsOfRetiredSettings({ DELIVERY_PLACES: '4', WEBHOOK_CONCURRENCY: '' })).toEqual([])
  expect(warningsOfRetiredSettings({ DELIVERY_CONCURRENCY: '256', WEBHOOK_CONCURRENCY: '32' })).toEqual([
    'DELIVERY_CONCURRENCY is set and does nothing any more: DELIVERY_PLACES says how many deliveries a process has in flight; remove DELIVERY_CONCURRENCY',
    'WEBHOOK_CONCURRENCY is set and does nothing any more: ENDPOINT_MAX_IN_FLIGHT says how many are in flight to one URL at most; remove WEBHOOK_CONCURRENCY',
  ])
})
