import { type MantineColorsTuple, mergeThemeOverrides } from '@mantine/core'
import { accent, theme } from '../theme.ts'
import { shadesOf } from './shades.ts'

/**
 * Returns the theme of the dashboard with another accent colour.
 *
 * @param color `#` and six hexadecimal digits. Null: the colour of Postern.
 */
export function themeWith(color: string | null): typeof theme {
  if (color === null) return theme
  return mergeThemeOverrides(theme, { colors: { accent: shadesOf(color, accent) as unknown as MantineColorsTuple } })
}
