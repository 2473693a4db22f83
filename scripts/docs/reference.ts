import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AppRoute, type AppRouter, isAppRoute } from '@ts-rest/core'
import { errorTable } from '../../contract/errors.ts'
import { eventTypes } from '../../contract/event-types.ts'
import { contract } from '../../contract/index.ts'
import { readConfig } from '../../server/config/config.ts'
import { settingsTable } from '../../server/config/settings.ts'
import { code, type Part, table } from './markdown.ts'

/* The parts of docs/reference/ that are generated from tables of the contract and the server. */

export function referenceParts(): Part[] {
  return [
    {
      page: 'docs/reference/settings.md',
      name: 'settings',
      source: 'the table of settings',
      content: settings(),
    },
    { page: 'docs/reference/errors.md', name: 'errors', source: 'contract/errors.ts', content: errors() },
    {
      page: 'docs/reference/event-types.md',
      name: 'event types',
      source: 'contract/event-types.ts',
      content: eventTypeTable(),
    },
    {
      page: 'docs/reference/event-types.md',
      name: 'examples',
      source: 'contract/event-types.ts',
      content: eventExamples(),
    },
    { page: 'docs/reference/api.md', name: 'routes', source: 'contract/index.ts', content: routes() },
    { page: 'docs/reference/rate-limits.md', name: 'plans', source: 'the table of settings', content: plans() },
    ...receivers.map(receiverPart),
  ]
}

/** The receivers of webhooks that the dashboard shows. */
const receivers = [
  { language: 'Node', fence: 'javascript', file: 'receiver.mjs' },
  { language: 'Python', fence: 'python', file: 'receiver.py' },
  { language: 'Go', fence: 'go', file: 'receiver.go' },
  { language: 'PHP', fence: 'php', file: 'receiver.php' },
  { language: 'Ruby', fence: 'ruby', file: 'receiver.rb' },
] as const

function receiverPart({ language, fence, file }: (typeof receivers)[number]): Part {
  const source = `server/dashboard/receivers/${file}`
  const text = readFileSync(join(import.meta.dirname, '../..', source), 'utf8')
  const content = `\`\`\`${fence}\n${text}\`\`\``
  return { page: 'docs/guides/receiving-webhooks.md', name: `receiver in ${language}`, source, content }
}

function settings(): string {
  return table(
    ['Name', 'Unit', 'Default', 'Meaning'],
    settingsTable.map(({ name, unit, default: value, meaning }) => [code(name), unit, value ?? 'none', meaning]),
  )
}

function errors(): string {
  const byStatus = Object.entries(errorTable).sort(([, a], [, b]) => a.status - b.status)
  return table(
    ['Status', 'Code', 'Meaning'],
    byStatus.map(([name, { status, meaning }]) => [String(status), code(name), meaning]),
  )
}

function eventTypeTable(): string {
  return table(
    ['Type', 'Meaning', 'Fields of `data`', 'Reaches'],
    [...eventTypes].map(([name, { meaning, data, shared }]) => [
      code(name),
      meaning,
      Object.keys(data.shape).map(code).join(', '),
      shared ? 'test and live' : 'the mode it happened in',
    ]),
  )
}

function eventExamples(): string {
  return [...eventTypes]
    .map(([name, { exampleBody }]) => `### ${name}\n\n\`\`\`json\n${JSON.stringify(exampleBody, null, 2)}\n\`\`\``)
    .join('\n\n')
}

function routes(): string {
  const routesOf = (router: AppRouter): AppRoute[] =>
    Object.values(router).flatMap((entry) => (isAppRoute(entry) ? [entry] : routesOf(entry)))
  return table(
    ['Resource', 'Routes'],
    Object.entries(contract).map(([resource, router]) => [
      resource,
      routesOf(router)
        .map(({ method, path }) => code(`${method} ${path}`))
        .join(', '),
    ]),
  )
}

function plans(): string {
  return table(
    ['Plan', 'Requests per minute'],
    Object.entries(readConfig({}).rateLimits).map(([plan, limit]) => [code(plan), limit.toLocaleString('en')]),
  )
}
