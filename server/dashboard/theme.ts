import { createTheme, type MantineColorsTuple } from '@mantine/core'

/** The one accent colour. Shade 7 has 4.5:1 on white, shade 4 on the dark background. */
export const accent: MantineColorsTuple = [
  '#eef1ff',
  '#dde2fb',
  '#b8c1f3',
  '#93a0ee',
  '#8190f0',
  '#5b6de6',
  '#4658d6',
  '#3448c5',
  '#2a3ba8',
  '#20308a',
]

/** Neutral greys, with no colour of their own. */
const dark: MantineColorsTuple = [
  '#e3e4e6',
  '#b9bbc0',
  '#9a9da4',
  '#6d7078',
  '#45484f',
  '#303338',
  '#26282d',
  '#191b1f',
  '#131518',
  '#0e0f12',
]

const gray: MantineColorsTuple = [
  '#f8f8f9',
  '#f1f2f3',
  '#e6e7ea',
  '#dcdde1',
  '#c6c8cd',
  '#9b9ea6',
  '#676a73',
  '#4b4e56',
  '#33353b',
  '#1c1d21',
]

export const theme = createTheme({
  colors: { accent, dark, gray },
  primaryColor: 'accent',
  primaryShade: { light: 7, dark: 6 },
  fontFamily: 'ui-sans-serif, system-ui, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace',
  // Four sizes: notes, text and tables, headings of sections, headings of screens.
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.8125rem', lg: '0.9375rem', xl: '1.25rem' },
  headings: {
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '1.25rem', lineHeight: '1.75rem' },
      h2: { fontSize: '0.9375rem', lineHeight: '1.5rem' },
      h3: { fontSize: '0.8125rem', lineHeight: '1.25rem' },
    },
  },
  defaultRadius: 'md',
  radius: { xs: '3px', sm: '4px', md: '6px', lg: '8px', xl: '12px' },
  cursorType: 'pointer',
  focusRing: 'auto',
  respectReducedMotion: true,
  components: {
    ColorPicker: { defaultProps: { hueLabel: 'Hue', saturationLabel: 'Saturation and brightness' } },
    // In the page's own order, so that the picker is within the dialog that it belongs to.
    ColorInput: { defaultProps: { popoverProps: { withinPortal: false, transitionProps: { duration: 0 } } } },
    // Most fields are required: the others say that they may be empty.
    InputWrapper: { defaultProps: { withAsterisk: false } },
    Notification: { defaultProps: { closeButtonProps: { 'aria-label': 'Close the message' } } },
    Modal: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } },
  },
})
