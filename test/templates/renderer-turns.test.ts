import { globSync, readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { createRendererTurns } from '../../server/templates/renderer-turns.ts'

const renderer = createRenderer({ peopleAtOnce: 10 })
afterAll(() => renderer[Symbol.asyncDispose]())

const slow = { subject: 'Slow', preheader: null, html: null, text: '{% for i in (1..4000) %}{{ i }}{% endfor %}' }
const quick = { subject: 'Quick', preheader: null, html: null, text: 'Hello' }

test('an account that renders much delays others by a request, and not by all of its own', async () => {
  const rendererOf = createRendererTurns(renderer)
  const ended: string[] = []
  const people = Array.from({ length: 10 }, () => ({}))
  const flood = Array.from({ length: 6 }, async (_, call) => {
    await rendererOf('flood').render(slow, people)
    ended.push(`flood ${call}`)
  })
  const other = rendererOf('other')
    .render(quick, [{}])
    .then(([rendering]) => {
      ended.push('other')
      return rendering
    })
  expect(await other).toEqual({ status: 'rendered', rendered: { subject: 'Quick', html: null, text: 'Hello' } })
  // A process was at the first call of the flood.
  expect(ended.length).toBeLessThanOrEqual(2)
  await Promise.all(flood)
  expect(ended.filter((name) => name !== 'other')).toEqual(flood.map((_, call) => `flood ${call}`))
})

test('a call that fails lets the next one of its account go on', async () => {
  const stopped = createRenderer()
  await stopped[Symbol.asyncDispose]()
  const rendererOf = createRendererTurns(stopped)
  await expect(rendererOf('one').render(quick, [{}])).rejects.toThrow('The renderer was stopped.')
  await expect(rendererOf('one').faultOf(quick)).rejects.toThrow('The renderer was stopped.')
})

test('the turns of the renderer that requests share are created once', () => {
  const creators = globSync('server/**/*.ts').filter((file) =>
    /import \{[^}]*\bcreateRendererTurns\b[^}]*\} from '[^']*\/renderer-turns\.ts'/.test(readFileSync(file, 'utf8')),
  )
  expect(creators).toEqual(['server/startup/features.ts'])
})
