import { z } from 'zod'
import { defaultMaxWebhooks } from '../../contract/webhooks.ts'
import { isLoopbackHost } from '../network/local-host.ts'
import { samplers } from '../observability/tracing/settings.ts'
import { mailSettings } from './mail-settings.ts'
import { portalSettings } from './portal-settings.ts'
import { retentionSettings } from './retention-settings.ts'
import {
  about,
  commaSeparatedList,
  numberSetting,
  optionalSetting,
  type SettingInfo,
  setting,
  wholeNumber,
  yesOrNo,
} from './setting-kinds.ts'

const defaultRateLimits = 'free=120,pro=3000,scale=30000'

const rateLimits = commaSeparatedList.pipe(
  z.array(
    z
      .string()
      .regex(/^[a-z][a-z0-9_-]*=\d+$/)
      .transform((item) => item.split('='))
      .pipe(z.tuple([z.string(), wholeNumber({ min: 1, max: 1_000_000_000 })])),
  ),
)

const databaseUrl = z.string().refine((value) => {
  if (!URL.canParse(value)) return false
  const { protocol, username, password, pathname } = new URL(value)
  return ['postgres:', 'postgresql:'].includes(protocol) && [username, password, pathname].every(isDecodable)
})

function isDecodable(part: string): boolean {
  try {
    decodeURIComponent(part)
    return true
  } catch {
    return false
  }
}

const publicUrl = z
  .string()
  .refine((value) => {
    if (!URL.canParse(value)) return false
    const { protocol, search, hash, username } = new URL(value)
    return (protocol === 'http:' || protocol === 'https:') && search === '' && hash === '' && username === ''
  })
  .transform((value) => value.replace(/\/+$/, ''))

/** Source: OpenID Connect Discovery 1.0 §2, §4: https, without query and fragment. */
const issuerUrl = z
  .string()
  .max(2_048)
  .refine((value) => {
    if (!URL.canParse(value)) return false
    const { protocol, hostname, search, hash, username } = new URL(value)
    return (
      (protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname))) &&
      [search, hash, username].every((part) => part === '')
    )
  })

const encryptionKey = z
  .string()
  .regex(/^[A-Za-z0-9+/]{43}=$/)
  .transform((value) => Buffer.from(value, 'base64'))

const collectorUrl = z.string().refine((value) => {
  if (!URL.canParse(value)) return false
  const { protocol, search, hash, username, password } = new URL(value)
  return ['http:', 'https:'].includes(protocol) && [search, hash, username, password].every((part) => part === '')
})

/** Source: OpenTelemetry Protocol Exporter, "Specifying headers via environment variables". */
const headerList = commaSeparatedList.pipe(
  z.array(
    z
      .string()
      .regex(/=/)
      .transform((item) => [item.slice(0, item.indexOf('=')).trim(), item.slice(item.indexOf('=') + 1).trim()])
      .pipe(
        z.tuple([
          z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/),
          z
            .string()
            .refine(isDecodable)
            .transform((value) => decodeURIComponent(value))
            .pipe(z.string().regex(/^[\x20-\x7e]+$/)),
        ]),
      ),
  ),
)

/** All settings: the environment variable, its schema and its documentation. */
export const settingsSchema = z.object({
  HOST: setting(
    {
      unit: 'address',
      default: '127.0.0.1',
      meaning: 'Where the service listens. `0.0.0.0` is every address of the machine.',
      allowed: 'an address or a host name of this machine',
    },
    z.string().regex(/^[\w.:%-]+$/),
  ),
  PORT: numberSetting({
    unit: 'port',
    default: 3000,
    min: 0,
    max: 65_535,
    meaning: 'The port the service listens on. 0 takes any that is free.',
  }),
  PUBLIC_URL: optionalSetting(
    {
      unit: 'URL',
      default: 'the address that was asked',
      meaning:
        'How clients reach the service; stands in the published spec, and in the links of emails: https is needed for those that leave this machine. While email is captured, they lead to the address listened on by default; where the API and the workers are processes of their own, PUBLIC_URL is needed for them.',
      allowed: 'a URL such as https://mail.example.com',
    },
    publicUrl,
  ),
  DATABASE_URL: optionalSetting(
    {
      unit: 'URL',
      default: null,
      meaning: 'A PostgreSQL from version 14. Without it the embedded one is started.',
      allowed: 'a URL such as postgres://user:password@host:5432/database',
    },
    databaseUrl,
  ),
  DATA_DIR: setting(
    {
      unit: 'directory',
      default: '.postern/',
      meaning: 'Where the embedded database and its encryption key are kept.',
      allowed: 'a directory',
    },
    z.string(),
  ),
  ENCRYPTION_KEY: optionalSetting(
    {
      unit: 'base64 of 32 bytes',
      default: 'made and kept in DATA_DIR',
      meaning:
        "Encrypts the webhooks' secrets and the domains' private keys in the database. Needed with DATABASE_URL.",
      allowed: '32 bytes in base64, as "openssl rand -base64 32" makes them',
    },
    encryptionKey,
  ),
  OIDC_ISSUER: optionalSetting(
    {
      unit: 'URL',
      default: null,
      meaning:
        'The identity provider (OpenID Connect) that users may sign in with: its issuer identifier, exactly. It leads back to `/app/provider` of PUBLIC_URL.',
      allowed: 'an https URL without a query, such as https://login.example.com; http for a host name of this machine',
    },
    issuerUrl,
  ),
  OIDC_CLIENT_ID: optionalSetting(
    {
      unit: 'text',
      default: null,
      meaning: 'The client identifier of this service there.',
      allowed: 'a client identifier',
    },
    z.string().max(1_000),
  ),
  OIDC_CLIENT_SECRET: optionalSetting(
    { unit: 'text', default: null, meaning: 'The client secret of this service there.', allowed: 'a client secret' },
    z.string().max(1_000),
  ),
  OIDC_NAME: optionalSetting(
    {
      unit: 'text',
      default: 'the host of OIDC_ISSUER',
      meaning: 'What users know the provider as: it stands on the button to sign in.',
      allowed: 'a name of 1 to 60 characters',
    },
    z.string().max(60),
  ),
  ROLES: setting(
    {
      unit: 'list',
      default: 'api,worker',
      meaning: 'What this process does: answer requests (`api`), deliver (`worker`), or both.',
      allowed: '"api", "worker" or "api,worker"',
    },
    commaSeparatedList.pipe(z.array(z.enum(['api', 'worker']))),
  ),
  RATE_LIMITS: setting(
    {
      unit: 'requests per minute',
      default: defaultRateLimits,
      meaning: 'The limit of each plan. A plan that is not named keeps its default; new names make new plans.',
      allowed: `plans with their requests per minute, such as ${defaultRateLimits}`,
    },
    rateLimits.transform((given) => ({
      ...Object.fromEntries(rateLimits.parse(defaultRateLimits)),
      ...Object.fromEntries(given),
    })),
  ),
  AUTH_FAILURES_PER_MINUTE: numberSetting({
    unit: 'requests per minute',
    default: 60,
    min: 1,
    max: 1_000_000,
    meaning: 'How often one client address may fail to authenticate.',
  }),
  TRUST_PROXY: numberSetting({
    unit: 'proxies',
    default: 0,
    min: 0,
    max: 16,
    meaning: 'How many proxies stand in front and are believed in `X-Forwarded-For`.',
  }),
  MAX_BODY_BYTES: numberSetting({
    unit: 'bytes',
    default: 1_048_576,
    min: 1024,
    max: 104_857_600,
    meaning: 'The largest request body that is read.',
  }),
  MAX_EMAIL_BODY_BYTES: numberSetting({
    unit: 'bytes',
    default: 62_914_560,
    min: 1024,
    max: 209_715_200,
    meaning: 'The same for a request with emails, which may hold files. While twice as much is under way, others wait.',
  }),
  ...retentionSettings,
  WEBHOOK_ALLOW_PRIVATE_NETWORKS: optionalSetting(
    {
      unit: 'true or false',
      default:
        'true with the embedded database where HOST is a loopback address and PUBLIC_URL is not public, else false',
      meaning:
        'Whether webhooks may lead to loopback, private and other special addresses. Link-local addresses and the metadata services of clouds are refused in any case.',
      allowed: '"true" or "false"',
    },
    yesOrNo,
  ),
  WEBHOOK_ALLOW_HTTP: optionalSetting(
    {
      unit: 'true or false',
      default: 'true with the embedded database, else false',
      meaning: 'Whether webhooks may be `http:`, not only `https:`.',
      allowed: '"true" or "false"',
    },
    yesOrNo,
  ),
  MAX_WEBHOOKS_PER_ACCOUNT: numberSetting({
    unit: 'webhooks',
    default: defaultMaxWebhooks,
    min: 1,
    max: 100_000,
    meaning: 'Webhooks that an account can have, test and live together. An account with more keeps them.',
  }),
  DELIVERY_PLACES: numberSetting({
    unit: 'requests',
    default: 1_024,
    min: 4,
    max: 10_000,
    meaning:
      'Deliveries in flight or being written down at once in this process. One account gets 80 % of them at most.',
  }),
  ENDPOINT_MAX_IN_FLIGHT: numberSetting({
    unit: 'requests',
    default: 64,
    min: 1,
    max: 10_000,
    meaning:
      'Deliveries in flight at once to one URL of an account at most; twice as many to one host. It begins with 4 and finds by itself how many the endpoint takes.',
  }),
  ...mailSettings,
  ...portalSettings,
  DATABASE_POOL_SIZE: numberSetting({
    unit: 'connections',
    default: 10,
    min: 2,
    max: 1000,
    meaning: 'Connections for requests at most. A process opens up to 3 more, one that works up to 17 more.',
  }),
  LOG_LEVEL: setting(
    {
      unit: 'level',
      default: 'info',
      meaning: 'The least serious messages that are logged.',
      allowed: '"fatal", "error", "warn", "info", "debug", "trace" or "silent"',
    },
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
  ),
  SHUTDOWN_TIMEOUT_SECONDS: numberSetting({
    unit: 'seconds',
    default: 30,
    min: 1,
    max: 35,
    meaning: 'How long a stopping process waits for deliveries, emails and turns of campaigns in flight.',
  }),
  OTEL_EXPORTER_OTLP_ENDPOINT: optionalSetting(
    {
      unit: 'URL',
      default: null,
      meaning: 'An OpenTelemetry collector. Traces are sent to `/v1/traces` below it; without it there are none.',
      allowed: 'an http or https URL without a password or a query, such as http://127.0.0.1:4318',
    },
    collectorUrl.transform((value) => `${value.replace(/\/+$/, '')}/v1/traces`),
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optionalSetting(
    {
      unit: 'URL',
      default: null,
      meaning: 'The same for traces alone, as it is: nothing is appended.',
      allowed: 'an http or https URL without a password or a query, such as http://127.0.0.1:4318/v1/traces',
    },
    collectorUrl,
  ),
  OTEL_EXPORTER_OTLP_HEADERS: optionalSetting(
    {
      unit: 'list',
      default: null,
      meaning: 'Headers for the collector, such as a key: `name=value`, percent-encoded.',
      allowed: 'headers with percent-encoded values, such as api-key=abc,x-tenant=mail%20service',
    },
    headerList.transform((pairs) => Object.fromEntries(pairs)),
  ),
  OTEL_SERVICE_NAME: setting(
    {
      unit: 'name',
      default: 'postern',
      meaning: 'What the service is called in traces.',
      allowed: 'a name of 1 to 255 characters',
    },
    z.string().min(1).max(255),
  ),
  OTEL_TRACES_SAMPLER: setting(
    {
      unit: 'name',
      default: 'parentbased_always_on',
      meaning: 'Which traces are recorded. `parentbased_…` follows the client that began one.',
      allowed: new Intl.ListFormat('en', { type: 'disjunction' }).format(samplers.map((name) => `"${name}"`)),
    },
    z.enum(samplers),
  ),
  OTEL_TRACES_SAMPLER_ARG: setting(
    {
      unit: 'share',
      default: '1',
      meaning: 'How many of them, for the samplers that end in `traceidratio`.',
      allowed: 'a number from 0 to 1, such as 0.05',
    },
    z
      .string()
      .regex(/^\d+(\.\d+)?$/)
      .transform(Number)
      .pipe(z.number().max(1)),
  ),
})

/** The parsed values of the settings. */
export type SettingValues = z.output<typeof settingsSchema>

/** The documentation of the settings in the order of docs/reference/settings.md. */
export const settingsTable: readonly (SettingInfo & { name: string })[] = Object.entries(settingsSchema.shape).flatMap(
  ([name, schema]) => {
    const info = about.get(schema)
    return info === undefined ? [] : [{ name, ...info }]
  },
)
