import { expect, test } from 'vitest'
import { packageOf, parseCpuProfile, summarise } from '../../scripts/bench/cpu-profile.ts'

test.each([
  ['its package', 'file:///app/node_modules/pg/lib/client.js', 'pg'],
  ['its package with a scope', 'file:///app/node_modules/@ts-rest/core/index.js', '@ts-rest/core'],
  ['the innermost package', 'file:///app/node_modules/a/node_modules/b/b.js', 'b'],
  [
    'a room of the service',
    'file:///app/server/webhook-delivery/settlement/settle-attempts.ts',
    'server/webhook-delivery/',
  ],
  ['the service', 'file:///app/server/app.ts', 'server/'],
  ['Node', 'node:net', 'node'],
])('a function belongs to %s', (_, url, expected) => {
  expect(packageOf(url, 'f')).toBe(expected)
})

test('a function belongs to the engine, when it has no file', () => {
  expect(packageOf('', 'writev')).toBe('engine')
  expect(packageOf('', '(garbage collector)')).toBe('(garbage collector)')
})

test('self times are added up by function and by package, without the time of rest', () => {
  const frame = (functionName: string, url: string) => ({ functionName, url, lineNumber: 9 })
  const profile = parseCpuProfile(
    JSON.stringify({
      nodes: [
        { id: 1, callFrame: frame('(idle)', '') },
        { id: 2, callFrame: frame('query', 'file:///app/node_modules/pg/lib/client.js') },
        // The same function, called from elsewhere.
        { id: 3, callFrame: frame('query', 'file:///app/node_modules/pg/lib/client.js') },
        { id: 4, callFrame: frame('', 'file:///app/server/shared/ids.ts') },
      ],
      samples: [1, 2, 3, 4],
      timeDeltas: [5_000_000, 1_000_000, 2_000_000, 500_000],
    }),
  )
  expect(summarise(profile)).toEqual({
    idleSeconds: 5,
    busySeconds: 3.5,
    byPackage: [
      { name: 'pg', seconds: 3 },
      { name: 'server/shared/', seconds: 0.5 },
    ],
    byFunction: [
      { name: 'query pg/lib/client.js:10', seconds: 3 },
      { name: '(anonymous) server/shared/ids.ts:10', seconds: 0.5 },
    ],
  })
})
