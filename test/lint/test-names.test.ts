import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/*
 * The name of a test is read alone: in a report, in a log, in an editor. So it names its subject, and does not begin with
 * what is said of the title of a `describe`.
 */

/** Each stands for a subject, or says something of one, that the name then lacks. A word that is as often a noun, such as `counts`, is none. */
const beginnings = new Set(
  `it its those this that behaves is are was were has have had does do can cannot may must will would should whose which and or but still
  admits allows asks becomes begins belongs breaks broke brings cancels carries closes comes costs creates deletes
  delays disables does ends expires fails finds finishes follows forgets forgives gets gives goes handles holds judges
  keeps knows lasts leads leaves lets loses makes misses needs passes prints puts reaches reads refuses
  releases says sees sends serves sets signs slows starts starves stays stops stores subscribes takes tells tries trusts
  uses waits works writes`.split(/\s+/),
)
/** Inside of a `describe`, what begins with one of these goes on with its title. */
const prepositions = new Set(
  `of to with without for from by in into on at as while when until after before behind beyond beside below above over
  under within between during against through because since where once`.split(/\s+/),
)

/** The names of the tests in a file as the formatter leaves it: what is indented stands inside of a `describe`. */
function namesIn(source: string): { name: string; isInside: boolean }[] {
  return [...source.matchAll(/^( *)test(\.each|\.for|\.runIf|\.skipIf)?\b/gm)].flatMap(
    ({ index, 0: head, 1: indent, 2: kind }) => {
      const title = kind === undefined ? /\(\s*(['"`])(.*?)(?<!\\)\1/s : /\)\(\s*(['"`])(.*?)(?<!\\)\1/s
      const name = title.exec(source.slice(index + head.length))?.[2]
      return name === undefined ? [] : [{ name, isInside: indent !== '' }]
    },
  )
}

function standsAlone(name: string, isInside: boolean): boolean {
  const [first = ''] = name.split(/[\s,;:]/)
  return !beginnings.has(first) && !(isInside && prepositions.has(first))
}

const names = globSync('test/**/*.test.ts').flatMap((file) =>
  namesIn(readFileSync(file, 'utf8')).map((found) => ({ file, ...found })),
)

test('the name of each test stands alone', () => {
  expect(names.length).toBeGreaterThan(2500)
  expect(names.filter(({ name, isInside }) => !standsAlone(name, isInside))).toEqual([])
})

test('a name without its subject is found', () => {
  const source = [
    "describe('a key', () => {",
    "  test('is kept', () => {})",
    "  test.each([[1], [2]])('with %i permissions is kept', () => {})",
    "  test('a key is kept', () => {})",
    '})',
    'test.skipIf(isWindows)(',
    "  'does nothing', () => {})",
    "test('with a key all is well', () => {})",
  ].join('\n')
  expect(namesIn(source).filter(({ name, isInside }) => !standsAlone(name, isInside))).toEqual([
    { name: 'is kept', isInside: true },
    { name: 'with %i permissions is kept', isInside: true },
    { name: 'does nothing', isInside: false },
  ])
})
