import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readableOn } from '../../contract/readable-color.ts'

test('the text of buttons can be read on every color', () => {
  const parts = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255))
  fc.assert(
    fc.property(parts, (rgb) => {
      const color = `#${Buffer.from(rgb).toString('hex')}`
      expect(contrast(color, readableOn(color))).toBeGreaterThanOrEqual(4.5)
    }),
    { examples: [[[0, 0, 0]], [[255, 255, 255]], [[118, 118, 118]], [[117, 117, 117]]] },
  )
})

/** The contrast of two colors as WCAG 2.2 defines it. */
function contrast(...colors: [string, string]): number {
  const [dark = 0, light = 0] = colors
    .map((color) => {
      const [red = 0, green = 0, blue = 0] = [...Buffer.from(color.slice(1), 'hex')]
        .map((byte) => byte / 255)
        .map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4))
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    })
    .toSorted((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}
