import { expect, test } from 'vitest'
import { startTestService } from '../support/service.ts'

test.each([
  [0, 1],
  [1, 0],
])(
  'with TRUST_PROXY=%i, the number of warnings in the log about requests from a proxy is %i',
  async (trustProxy, count) => {
    await using service = await startTestService({ roles: { worker: false }, trustProxy })
    const warnings = () => service.logged.filter((line) => line.includes('TRUST_PROXY'))
    expect((await service.client.send('GET', '/healthz', { key: null })).status).toBe(200)
    expect(warnings()).toEqual([])
    const headers = { 'x-forwarded-for': '203.0.113.7' }
    for (let times = 0; times < 3; times++) await service.client.send('GET', '/v1/webhooks', { headers })
    expect(warnings()).toHaveLength(count)
    expect(warnings().join()).not.toContain('203.0.113.7')
  },
)
