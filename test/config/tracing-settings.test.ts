import { expect, test } from 'vitest'
import { readConfig } from '../../server/config/config.ts'
import { settingsTable } from '../../server/config/settings.ts'
import { faultOf } from '../support/settings.ts'

const endpoint = 'https://collector.example/otel'

test('traces go below the endpoint of all signals, or where they are sent alone', () => {
  expect(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/` }).tracing).toEqual({
    endpoint: `${endpoint}/v1/traces`,
    headers: {},
    serviceName: 'postern',
    sampler: 'parentbased_always_on',
    samplerRatio: 1,
  })
  const alone = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/alone` }
  expect(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...alone }).tracing?.endpoint).toBe(`${endpoint}/alone`)
})

test('traces are named, sampled and sent with headers as told', () => {
  const tracing = readConfig({
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%2Cb=, x-tenant = mail service ',
    OTEL_SERVICE_NAME: 'mail',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.05',
  }).tracing
  expect(tracing).toMatchObject({ serviceName: 'mail', sampler: 'traceidratio', samplerRatio: 0.05 })
  expect(tracing?.headers).toEqual({ 'api-key': 'a,b=', 'x-tenant': 'mail service' })
})

test.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector.example:4318'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'grpc://collector.example:4317'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'https://ann:hush@collector.example'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'https://collector.example/v1/traces?key=hush'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'hush'],
  ['OTEL_EXPORTER_OTLP_HEADERS', '=hush'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'api key=hush'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'key=hush%zz'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'key=hush%0d%0aHost: elsewhere'],
])('traces are refused with %s=%s, which is not told', (name, value) => {
  const { allowed } = settingsTable.find((setting) => setting.name === name) ?? { allowed: 'no such setting' }
  expect(faultOf({ [name]: value })).toBe(`${name} must be ${allowed}`)
})
