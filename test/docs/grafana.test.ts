import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { readDocument, root } from './document.ts'

/* The dashboard and the alerts name metrics that the service has, and treat each as what it is. */

const folder = 'docs/operating/grafana'

let service: TestService
/** The metrics of `/metrics`: name → `counter`, `gauge` or `histogram`. */
let kinds: Map<string, string>

beforeAll(async () => {
  const inbound = { host: '127.0.0.1', port: 0, tls: null }
  service = await startTestService({ mail: { inbound, hostname: 'mail.example.com' } })
  const text = await (await fetch(`${service.url}/metrics`)).text()
  kinds = new Map([...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', kind = '']) => [name, kind]))
})
afterAll(() => service.stop())

function contentOf(name: string): string {
  return readFileSync(join(root, folder, name), 'utf8')
}

/** Every PromQL expression below a JSON value, and the queries of its variables. */
function expressionsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(expressionsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    typeof inner === 'string' && ['expr', 'query'].includes(key) && inner.includes('_')
      ? [inner]
      : expressionsIn(inner),
  )
}

/** The expression of each rule: what stands behind `expr:`, also on the lines below it. */
function expressionsOfRules(yaml: string): string[] {
  return [...yaml.matchAll(/^ {8}expr: (?:>\n((?: {10}.*\n)+)|(.*))$/gm)].map(
    ([, folded, plain]) => folded ?? plain ?? '',
  )
}

/** The metrics of an expression as they are written: with the `_bucket` of a histogram. */
function seriesIn(expression: string): string[] {
  return expression.match(/\b(?:postern|process|nodejs)_\w+/g) ?? []
}

function kindOf(series: string): string | undefined {
  const histogram = series.replace(/_(?:bucket|sum|count)$/, '')
  return kinds.get(series) ?? (kinds.get(histogram) === 'histogram' ? 'counter' : undefined)
}

const sources = [
  { name: 'dashboard.json', expressions: expressionsIn(JSON.parse(contentOf('dashboard.json'))) },
  { name: 'alerts.yaml', expressions: expressionsOfRules(contentOf('alerts.yaml')) },
]

describe.each(sources)('$name', ({ name, expressions }) => {
  test('a file for monitoring has an expression for each panel or rule', () => {
    const marks = contentOf(name).match(name === 'alerts.yaml' ? /- alert: /g : /"expr": /g) ?? []
    expect(marks.length).toBeGreaterThan(10)
    expect(expressions.length).toBeGreaterThanOrEqual(marks.length)
  })

  test('a file for monitoring names metrics that the service has', () => {
    const named = new Set(expressions.flatMap(seriesIn))
    expect(named.size).toBeGreaterThan(5)
    expect([...named].filter((series) => kindOf(series) === undefined)).toEqual([])
  })

  test('a file for monitoring takes rates of counters, and of nothing else', () => {
    for (const expression of expressions) {
      const rated = [...expression.matchAll(/\b(?:rate|increase)\((\w+)/g)].map(([, series = '']) => series)
      const others = seriesIn(expression).filter((series) => !rated.includes(series))
      expect(rated.map((series) => [series, kindOf(series)])).toEqual(rated.map((series) => [series, 'counter']))
      const counters = others.filter((series) => kindOf(series) === 'counter')
      if (!expression.startsWith('label_values(')) expect(counters).toEqual([])
    }
  })
})

test('what alerts point to is a heading of the page about incidents, or a page', () => {
  const named = [...contentOf('alerts.yaml').matchAll(/See "(.+?)"\./g)].map(([, title = '']) =>
    title.replaceAll("''", "'"),
  )
  expect(named.length).toBeGreaterThan(4)
  const { text } = readDocument('docs/operating/incidents.md')
  expect(named.filter((title) => !text.includes(`## ${title}\n`) && title !== 'Why is it late?')).toEqual([])
})
