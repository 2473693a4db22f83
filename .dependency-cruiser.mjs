/*
 * Which room may import which. A room is a folder, or a file that stands beside the rooms. Imports run one way: a room
 * knows those in its line, and itself. A new room is a new line. `npm run rooms` checks it.
 */

const base = 'contract lib shared'
const features = `${base} database outbox message`

/** What a room of `server/` imports of ours. */
const rooms = {
  lib: '',
  shared: 'contract',
  secrets: '',
  network: 'lib',
  observability: 'lib secrets',
  database: base,
  queue: `${base} database`,
  outbox: `${base} database`,
  statistics: `${base} database`,

  'webhook-delivery': `${base} secrets network observability database queue outbox statistics`,
  'fan-out': `${base} observability database queue outbox webhook-delivery`,

  message: `${base} secrets`,
  rendering: 'lib',
  smtp: 'lib network shared',
  'smtp-listener': `${base}`,
  'stored-messages': `${base} database message smtp-listener`,
  'email-delivery': `${base} secrets network database queue outbox statistics message smtp stored-messages`,
  tracking: `${base} database outbox message email-delivery`,
  bounces: `${base} database outbox message smtp smtp-listener email-delivery stored-messages`,

  'audit-log': `${base} database`,
  'request-logs': `${base} secrets database`,
  accounts: `${base} database`,
  processes: `${base} database`,
  'api-keys': `${base} database accounts audit-log`,
  operator: `${base} database accounts audit-log processes`,
  users: `${base} secrets database accounts audit-log`,
  'account-email': `${base} database message smtp email-delivery users`,
  'portal-sessions': `${base} database users`,
  suppressions: `${features} audit-log`,
  topics: `${base} database audit-log`,
  subscribers: `${features} audit-log suppressions topics`,
  audiences: `${features} audit-log subscribers topics`,
  segments: `${features} audit-log subscribers audiences topics`,
  imports: `${features} audit-log suppressions subscribers audiences topics`,
  domains: `${features} audit-log secrets network`,
  templates: `${base} database audit-log rendering`,
  emails: `${features} queue audiences email-delivery statistics templates`,
  confirmations: `${features} subscribers suppressions audiences emails`,
  campaigns: `${features} audit-log queue statistics rendering subscribers audiences segments templates topics emails`,
  events: features,
  deliveries: `${features} audit-log queue observability webhook-delivery`,
  webhooks: `${features} audit-log secrets webhook-delivery deliveries`,

  http: `${base} secrets network observability database tracking stored-messages accounts operator api-keys users
    portal-sessions suppressions topics subscribers audiences segments imports domains emails confirmations
    templates campaigns events
    deliveries webhooks audit-log statistics request-logs`,
  background: `${base} observability database queue outbox fan-out webhook-delivery email-delivery stored-messages
    audit-log statistics request-logs`,
  config: `${base} network observability database secrets message smtp`,

  // Built for browsers: it meets the service over HTTP alone.
  dashboard: 'contract',
}

/** Who may import a package. */
const packages = {
  'csv-parse': 'server/(imports|dashboard)',
  '(yauzl|@types/yauzl)': 'server/imports',
  '(express|@ts-rest/express)': 'server/http',
  'pg-boss': 'server/queue',
  '@opentelemetry/[^/]+': 'server/observability/tracing',
  '(smtp-server|@types/smtp-server)': 'server/smtp-listener',
  '(@simplewebauthn/server|openid-client)': 'server/users',
  '(react|react-dom|@mantine/[^/]+|@tanstack/[^/]+|@tabler/[^/]+|@simplewebauthn/browser)': 'server/dashboard',
}

const own = '^(contract|openapi|server|scripts|test)/'

function pathsOf(names) {
  return names
    .split(/\s+/)
    .filter((name) => name !== '')
    .map((name) => (name === 'contract' ? 'contract/' : `server/${name}/`))
}

function roomRule(room, names) {
  return {
    name: `imports of ${room}`,
    comment: `Pass what server/${room} needs as an argument, or add the room to its line in .dependency-cruiser.mjs.`,
    severity: 'error',
    from: { path: `^server/${room}/` },
    to: { path: own, pathNot: `^(${[`server/${room}/`, ...pathsOf(names)].join('|')})` },
  }
}

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...Object.entries(rooms).map(([room, names]) => roomRule(room, names)),
    {
      name: 'a room without a line',
      comment: 'Give the room a line in .dependency-cruiser.mjs.',
      severity: 'error',
      from: { path: `^server/(?!(${Object.keys(rooms).join('|')}|cli|startup)/)[^/]+/` },
      to: {},
    },
    {
      name: 'queries of another room',
      comment: 'Ask the service of the room that owns the table, or what it publishes for others.',
      severity: 'error',
      from: { path: '^server/([^/]+)' },
      to: { path: 'queries\\.ts$', pathNot: '^server/$1/' },
    },
    {
      name: 'imports of the contract',
      severity: 'error',
      from: { path: '^contract/' },
      to: { pathNot: '^(contract/|node_modules/(zod|@ts-rest/core)/)' },
    },
    {
      name: 'imports of openapi',
      severity: 'error',
      from: { path: '^openapi/' },
      to: { path: own, pathNot: '^(contract|openapi)/' },
    },
    {
      name: 'main, cli → app',
      comment: 'The process and the command line are imported by nobody, app by them alone.',
      severity: 'error',
      from: { path: '^server/', pathNot: '^server/(main\\.ts|run-service\\.ts|cli/)' },
      to: { path: '^server/(main\\.ts|run-service\\.ts|app\\.ts|cli/)', pathNot: '^$0' },
    },
    {
      name: 'app → startup',
      comment: 'What app.ts starts is imported by it alone.',
      severity: 'error',
      from: { path: '^server/', pathNot: '^server/(app\\.ts|startup/)' },
      to: { path: '^server/startup/' },
    },
    {
      name: 'what runs in production',
      severity: 'error',
      from: { path: '^(server|scripts)/' },
      to: { path: '^test/' },
    },
    {
      name: 'scripts in production',
      severity: 'error',
      from: { path: '^server/' },
      to: { path: '^scripts/' },
    },
    {
      name: 'process',
      comment: 'Use the global `process`. Its environment is read by server/config alone.',
      severity: 'error',
      from: { path: '^server/' },
      to: { path: '^(node:)?process$' },
    },
    ...Object.entries(packages).map(([name, room]) => ({
      name: `${name} outside ${room}`,
      severity: 'error',
      from: { path: '^(server|openapi)/', pathNot: `^${room}/` },
      to: { path: `^node_modules/${name}/` },
    })),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    exclude: { path: '^(docs|openapi/released)/' },
  },
}
