import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shadesOf } from '../../server/dashboard/portal/shades.ts'

/** Shades 0 to 7 of a colour that text can be read in. */
const base = ['#eef1ff', '#dde2fb', '#b8c1f3', '#93a0ee', '#8190f0', '#5b6de6', '#4658d6', '#3448c5']

/** WCAG 2.2. */
function contrast(one: string, other: string): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (high + 0.05) / (low + 0.05)
}

function luminance(color: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255)
  const [red = 0, green = 0, blue = 0] = parts.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  )
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const colour = fc.integer({ min: 0, max: 0xffffff }).map((number) => `#${number.toString(16).padStart(6, '0')}`)

test('text can be read on and in every colour, as in that of Postern', () => {
  fc.assert(
    fc.property(colour, (given) => {
      const shades = shadesOf(given, base)
      for (const shade of shades) expect(shade).toMatch(/^#[0-9a-f]{6}$/)
      expect(contrast(shades[7] ?? '', '#ffffff')).toBeGreaterThanOrEqual(5)
      expect(contrast(shades[6] ?? '', '#ffffff')).toBeGreaterThanOrEqual(contrast('#4658d6', '#ffffff') - 0.05)
      // On the dark background.
      expect(contrast(shades[4] ?? '', '#191b1f')).toBeGreaterThanOrEqual(4.5)
      expect(contrast(shades[0] ?? '', '#ffffff')).toBeLessThan(1.2)
    }),
  )
})

test('a colour that is dark enough is used as it is', () => {
  expect(shadesOf('#0f766e', base)[7]).toBe('#0f766e')
  expect(shadesOf('#ffd400', base)[7]).not.toBe('#ffd400')
})
