import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { withStylesRenamed } from '../../server/dashboard/screens/emails/preview-html.ts'

describe('the HTML of a preview', () => {
  test.each([
    ['<p style="color: red" title="a > b">', '<p data-style="color: red" title="a > b">'],
    ["<p title='<' STYLE = x>", "<p title='<' data-style = x>"],
    ['<style media="all">p {}</style>', '<style nonce="abc" media="all">p {}</style>'],
    ['<p>style="color: red"</p>', '<p>style="color: red"</p>'],
    ['<a <p style="color: red">', '<a <p data-style="color: red">'],
  ])('%s becomes %s', (html, expected) => expect(withStylesRenamed(html, 'abc')).toBe(expected))

  test.each([['<a'], ['<a "'], ["<a '"], ['<a ""'], [`<a "'`], [`<a"<a'`], ['<a  '], ['<style '], ['<a x="<a" ']])(
    'the HTML of a preview of many %s without an end is read in one go',
    (piece) => {
      // The time limit ends a match that would take minutes, and is far above what one takes.
      const read = () => withStylesRenamed(piece.repeat(600_000 / piece.length), 'abc')
      expect(runInNewContext('read().length', { read }, { timeout: 20_000 })).toBeGreaterThanOrEqual(500_000)
    },
  )
})
