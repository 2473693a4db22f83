import { hostname } from 'node:os'
import type { z } from 'zod'
import type { Mailbox } from '../message/mailbox.ts'
import { isPublicHostName } from '../network/host-name.ts'
import { isLoopbackHost, isPublicUrl, leadsToOwnMachine } from '../network/local-host.ts'
import type { TracingConfig } from '../observability/tracing/settings.ts'
import { OperatorError } from '../shared/errors.ts'
import { type SettingValues, settingsSchema, settingsTable } from './settings.ts'

/** The database: an external PostgreSQL, or the embedded one. */
export type DatabaseConfig = { readonly poolSize: number } & (
  | { readonly kind: 'external'; readonly url: string }
  | { readonly kind: 'embedded'; readonly dataDir: string }
)

/** The settings of one process, validated and with their defaults. */
export type Config = {
  readonly http: {
    readonly host: string
    /** 0: any free port. */
    readonly port: number
    /** URL of the service for clients, without a trailing slash. Null: the address it listens on. */
    readonly publicUrl: string | null
    readonly maxBodyBytes: number
    /** Largest body of a request with emails. */
    readonly maxEmailBodyBytes: number
    /** Number of proxies in front of the service whose `X-Forwarded-*` headers are trusted. */
    readonly trustProxy: number
    /** Failed authentications allowed to one client address in a minute. */
    readonly authFailuresPerMinute: number
    /** Origins of the pages that may show the portal in a frame. */
    readonly portalOrigins: readonly string[]
  }
  /** How the portal looks where its session does not say. */
  readonly portal: { readonly accentColor: string | null; readonly colorScheme: SettingValues['PORTAL_COLOR_SCHEME'] }
  readonly database: DatabaseConfig
  /** 32 bytes. Null: kept in the data directory of the embedded database. */
  readonly encryptionKey: Buffer | null
  readonly roles: { readonly api: boolean; readonly worker: boolean }
  /** Requests per minute of each plan. */
  readonly rateLimits: Readonly<Record<string, number>>
  /** True when requests of API keys are kept for the request logs. */
  readonly requestLogs: boolean
  /** Milliseconds after which events, attempts and emails are deleted. */
  readonly retentionMs: number
  /** How long statistics by day are kept. Milliseconds. */
  readonly statisticsMs: number
  readonly webhooks: {
    readonly allowPrivateNetworks: boolean
    readonly allowHttp: boolean
    /** Most webhooks of an account, of both modes together. */
    readonly maxPerAccount: number
    /** Most webhooks of a customer in the portal, of each mode. */
    readonly maxPerCustomer: number
  }
  readonly delivery: {
    /** Most requests in flight or being settled in this process. */
    readonly places: number
    /** Most requests in flight to one URL of an account. */
    readonly endpointMax: number
  }
  readonly mail: {
    readonly transport: SettingValues['MAIL_TRANSPORT']
    /** The relay of the relay transport. Null: not set. */
    readonly relay: SettingValues['SMTP_URL']
    readonly concurrency: number
    readonly connectionsPerHost: number
    readonly messagesPerConnection: number
    /** True when mail servers may have addresses that are not public. */
    readonly allowPrivateNetworks: boolean
    /** Host name in EHLO and in the greeting of the inbound server. */
    readonly hostname: string
    /** Host whose SPF record sending domains include. Null: their records allow `hostname`. */
    readonly spfInclude: string | null
    /** Name servers in the format of `node:dns`. Null: those of the system. */
    readonly dnsServers: readonly string[] | null
    /** The sender of emails to people who sign in. Null: there are no such emails. */
    readonly accountEmailFrom: SettingValues['ACCOUNT_EMAIL_FROM']
    /** Port of the capture transport. 0: any free port. */
    readonly capturePort: number
    /** The SMTP server for notifications about email. Null: none. */
    readonly inbound: InboundConfig | null
  }
  /** The identity provider that users sign in with (OpenID Connect). Null: none. */
  readonly identityProvider: ProviderConfig | null
  readonly logLevel: SettingValues['LOG_LEVEL']
  readonly shutdownTimeoutSeconds: number
  /** Null: nothing is traced. */
  readonly tracing: TracingConfig | null
}

/** An identity provider. */
export type ProviderConfig = {
  /** The issuer identifier. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** The name that users see. */
  readonly name: string
}

/** The SMTP server for bounces, complaints and other notifications. */
export type InboundConfig = {
  readonly host: string
  readonly port: number
  /** PEM files. Null: no STARTTLS. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null
}

/** The settings that a command needs: the database and the plans. */
export type CommandConfig = Pick<Config, 'database' | 'rateLimits'>

type Env = Readonly<Record<string, string | undefined>>

/** Settings that no longer have an effect, with their replacements. */
const retiredSettings: Readonly<Record<string, string>> = {
  DELIVERY_CONCURRENCY: 'DELIVERY_PLACES says how many deliveries a process has in flight',
  WEBHOOK_CONCURRENCY: 'ENDPOINT_MAX_IN_FLIGHT says how many are in flight to one URL at most',
}

/** Returns a warning for each setting that is set but no longer has an effect. */
export function warningsOfRetiredSettings(env: Env = process.env): string[] {
  return Object.entries(retiredSettings).flatMap(([name, instead]) =>
    (env[name] ?? '') === '' ? [] : [`${name} is set and does nothing any more: ${instead}; remove ${name}`],
  )
}

/**
 * Reads the settings of a process from its environment. An empty variable counts as not set.
 *
 * Throws one OperatorError that names every invalid setting with its value, unless it is secret, and what is allowed.
 */
export function readConfig(env: Env = process.env, machineName: string = hostname()): Config {
  const values = parse(settingsSchema, env, [
    ...missingKeyOf(env),
    ...missingRelayOf(env),
    ...idleRelayOf(env),
    ...missingNameOf(env, machineName),
    ...missingPairOf(env),
    ...missingProviderOf(env),
    ...missingUrlOf(env),
  ])
  const isEmbedded = values.DATABASE_URL === null
  return {
    http: {
      host: values.HOST,
      port: values.PORT,
      publicUrl: values.PUBLIC_URL,
      maxBodyBytes: values.MAX_BODY_BYTES,
      maxEmailBodyBytes: values.MAX_EMAIL_BODY_BYTES,
      trustProxy: values.TRUST_PROXY,
      authFailuresPerMinute: values.AUTH_FAILURES_PER_MINUTE,
      portalOrigins: values.PORTAL_ORIGINS ?? [],
    },
    portal: { accentColor: values.PORTAL_ACCENT_COLOR, colorScheme: values.PORTAL_COLOR_SCHEME },
    database: databaseOf(values),
    encryptionKey: values.ENCRYPTION_KEY,
    roles: { api: values.ROLES.includes('api'), worker: values.ROLES.includes('worker') },
    rateLimits: values.RATE_LIMITS,
    requestLogs: values.REQUEST_LOGS,
    retentionMs: values.RETENTION_DAYS * 24 * 3_600_000,
    statisticsMs: values.STATISTICS_DAYS * 24 * 3_600_000,
    webhooks: {
      allowPrivateNetworks: values.WEBHOOK_ALLOW_PRIVATE_NETWORKS ?? (isEmbedded && isForThisMachine(values)),
      allowHttp: values.WEBHOOK_ALLOW_HTTP ?? isEmbedded,
      maxPerAccount: values.MAX_WEBHOOKS_PER_ACCOUNT,
      maxPerCustomer: values.MAX_WEBHOOKS_PER_CUSTOMER,
    },
    delivery: {
      places: values.DELIVERY_PLACES,
      endpointMax: values.ENDPOINT_MAX_IN_FLIGHT,
    },
    mail: {
      transport: values.MAIL_TRANSPORT,
      relay: values.SMTP_URL,
      concurrency: values.MAIL_CONCURRENCY,
      connectionsPerHost: values.MAIL_CONNECTIONS_PER_HOST,
      messagesPerConnection: values.MAIL_MESSAGES_PER_CONNECTION,
      allowPrivateNetworks: values.MAIL_ALLOW_PRIVATE_NETWORKS,
      hostname: values.MAIL_HOSTNAME ?? machineName.toLowerCase(),
      spfInclude: values.MAIL_SPF_INCLUDE,
      dnsServers: values.MAIL_DNS_SERVERS,
      accountEmailFrom: values.ACCOUNT_EMAIL_FROM ?? defaultAccountSender(values),
      capturePort: values.CAPTURE_SMTP_PORT,
      inbound: inboundOf(values),
    },
    identityProvider: providerOf(values),
    logLevel: values.LOG_LEVEL,
    shutdownTimeoutSeconds: values.SHUTDOWN_TIMEOUT_SECONDS,
    tracing: tracingOf(values),
  }
}

/** Returns true when only programs on this machine can reach the API. */
function isForThisMachine({ HOST: host, PUBLIC_URL: publicUrl }: SettingValues): boolean {
  return isLoopbackHost(host) && (publicUrl === null || !isPublicUrl(publicUrl))
}

/**
 * Returns the sender of emails to people where ACCOUNT_EMAIL_FROM is not set. Links in captured email can be used by
 * all who read it: the operator has to ask for that where others can reach the service.
 */
function defaultAccountSender(values: SettingValues): Mailbox | null {
  const { HOST: host, PUBLIC_URL: publicUrl, MAIL_TRANSPORT: transport, ROLES: roles } = values
  const isOfThisMachine = isLoopbackHost(host) && (publicUrl === null || leadsToOwnMachine(new URL(publicUrl).hostname))
  const isAll = roles.includes('api') && roles.includes('worker')
  return transport === 'capture' && isAll && isOfThisMachine
    ? { name: 'Postern', address: 'account@postern.test', domain: 'postern.test' }
    : null
}

function inboundOf(values: SettingValues): InboundConfig | null {
  const { INBOUND_SMTP_PORT: port, INBOUND_SMTP_TLS_CERT: certFile, INBOUND_SMTP_TLS_KEY: keyFile } = values
  if (port === null) return null
  return {
    host: values.INBOUND_SMTP_HOST,
    port,
    tls: certFile === null || keyFile === null ? null : { certFile, keyFile },
  }
}

function providerOf(values: SettingValues): ProviderConfig | null {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret, OIDC_NAME: name } = values
  if (issuer === null || clientId === null || clientSecret === null) return null
  return { issuer, clientId, clientSecret, name: name ?? new URL(issuer).host }
}

function tracingOf(values: SettingValues): TracingConfig | null {
  const endpoint = values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? values.OTEL_EXPORTER_OTLP_ENDPOINT
  if (endpoint === null) return null
  return {
    endpoint,
    headers: values.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    serviceName: values.OTEL_SERVICE_NAME,
    sampler: values.OTEL_TRACES_SAMPLER,
    samplerRatio: values.OTEL_TRACES_SAMPLER_ARG,
  }
}

/** Reads the settings that a command needs and ignores the others. Throws as `readConfig` does. */
export function readCommandConfig(env: Env = process.env): CommandConfig {
  const needed = { DATABASE_URL: true, DATA_DIR: true, DATABASE_POOL_SIZE: true, RATE_LIMITS: true } as const
  const values = parse(settingsSchema.pick(needed), env, [])
  return { database: databaseOf(values), rateLimits: values.RATE_LIMITS }
}

/**
 * Reads the URL of the service for clients, without a trailing slash, for commands that print links: PUBLIC_URL, or the
 * address that a service with these settings listens on. Throws as `readConfig` does.
 */
export function readServiceUrl(env: Env = process.env): string {
  const { PUBLIC_URL, HOST, PORT } = parse(settingsSchema.pick({ PUBLIC_URL: true, HOST: true, PORT: true }), env, [])
  return PUBLIC_URL ?? `http://${leadsToOwnMachine(HOST) ? 'localhost' : HOST}:${PORT}`
}

function databaseOf(values: Pick<SettingValues, 'DATABASE_URL' | 'DATA_DIR' | 'DATABASE_POOL_SIZE'>): DatabaseConfig {
  const poolSize = values.DATABASE_POOL_SIZE
  return values.DATABASE_URL === null
    ? { kind: 'embedded', dataDir: values.DATA_DIR, poolSize }
    : { kind: 'external', url: values.DATABASE_URL, poolSize }
}

function missingRelayOf(env: Env): string[] {
  if (env.MAIL_TRANSPORT !== 'relay' || env.SMTP_URL) return []
  return ['SMTP_URL is needed with MAIL_TRANSPORT=relay: the relay, such as smtp://user:password@relay.example.com:587']
}

function idleRelayOf(env: Env): string[] {
  if (!env.SMTP_URL || env.MAIL_TRANSPORT === 'relay') return []
  return ['SMTP_URL is given, but only MAIL_TRANSPORT=relay sends over it: set that too, or leave SMTP_URL out']
}

/**
 * Returns an error when MAIL_HOSTNAME needs a dot but has none. Receivers resolve the name to check the sender, and to
 * deliver bounces. A relay sends under its own name: there, a name without a dot is an error only with
 * INBOUND_SMTP_PORT; otherwise `server/welcome.ts` warns of it.
 */
function missingNameOf(env: Env, machineName: string): string[] {
  const { MAIL_TRANSPORT: transport, INBOUND_SMTP_PORT: inboundPort, MAIL_HOSTNAME: given } = env
  if (isPublicHostName(given || machineName)) return []
  if (transport !== 'direct' && !(transport === 'relay' && inboundPort)) return []
  const fault = 'has no dot, and cannot be found from the records of sending domains'
  const remedy = 'give one the DNS has, such as mail.example.com'
  if (given) return [`MAIL_HOSTNAME is ${JSON.stringify(given)}, which ${fault}; ${remedy}`]
  const needing = transport === 'direct' ? 'MAIL_TRANSPORT=direct' : 'INBOUND_SMTP_PORT'
  return [
    `MAIL_HOSTNAME is needed with ${needing}: the name of this machine, ${JSON.stringify(machineName)}, ${fault}; ${remedy}`,
  ]
}

function missingKeyOf(env: Env): string[] {
  if (!env.DATABASE_URL || env.ENCRYPTION_KEY) return []
  return [
    'ENCRYPTION_KEY is needed with DATABASE_URL: make one with "openssl rand -base64 32" and keep it, since the secrets of the webhooks and the keys of the domains cannot be read without it',
  ]
}

function missingPairOf(env: Env): string[] {
  if (Boolean(env.INBOUND_SMTP_TLS_CERT) === Boolean(env.INBOUND_SMTP_TLS_KEY)) return []
  return ['INBOUND_SMTP_TLS_CERT and INBOUND_SMTP_TLS_KEY are needed together: set both, or none for no STARTTLS']
}

/** Returns an error when emails to people would have links that lead nowhere. */
function missingUrlOf(env: Env): string[] {
  const { ACCOUNT_EMAIL_FROM: from, PUBLIC_URL: publicUrl, MAIL_TRANSPORT: transport, ROLES: roles } = env
  const leaves = transport === 'relay' || transport === 'direct'
  const isSplit = roles !== undefined && roles !== '' && !(roles.includes('api') && roles.includes('worker'))
  if (!from || publicUrl || !(leaves || isSplit)) return []
  return ['PUBLIC_URL is needed with ACCOUNT_EMAIL_FROM: the links in emails to people begin with it']
}

function missingProviderOf(env: Env): string[] {
  const given = [env.OIDC_ISSUER, env.OIDC_CLIENT_ID, env.OIDC_CLIENT_SECRET].filter(Boolean).length
  if (given === 3 || (given === 0 && !env.OIDC_NAME)) return []
  return [
    'OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET are needed together: set all, or leave out all OIDC_ settings',
  ]
}

/** Settings whose values must not appear in a terminal or a log. */
const secretSettings: readonly string[] = [
  'OIDC_CLIENT_SECRET',
  'ENCRYPTION_KEY',
  'DATABASE_URL',
  'SMTP_URL',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
]

function parse<T extends z.ZodType>(schema: T, env: Env, faults: readonly string[]): z.output<T> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
  const result = schema.safeParse(given)
  if (result.success && faults.length === 0) return result.data

  const badNames = new Set(result.error?.issues.map((issue) => issue.path[0]))
  const bad = settingsTable
    .filter(({ name }) => badNames.has(name))
    .map(({ name, allowed }) =>
      secretSettings.includes(name)
        ? `${name} must be ${allowed}`
        : `${name} is ${JSON.stringify(given[name])}, but must be ${allowed}`,
    )
  throw new OperatorError([...bad, ...faults].join('; '))
}
