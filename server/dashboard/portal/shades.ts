type Rgb = readonly [red: number, green: number, blue: number]

/**
 * Returns a colour in the shades of another one, each as bright as that one's, so that text can be read on it and in it.
 * Shade 7 is the colour itself where white text has a contrast of 5:1 on it.
 *
 * Source: WCAG 2.2, relative luminance and contrast ratio.
 *
 * @param color `#` and six hexadecimal digits.
 * @param shades The shades of the other colour, in the same form.
 */
export function shadesOf(color: string, shades: readonly string[]): string[] {
  const given = rgbOf(color)
  const isDarkEnough = 1.05 / (luminanceOf(given) + 0.05) >= 5
  return shades.map((shade, index) =>
    index === 7 && isDarkEnough ? color : withLuminance(given, luminanceOf(rgbOf(shade))),
  )
}

function rgbOf(color: string): Rgb {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255)
  return [red, green, blue]
}

/** Returns the relative luminance, from 0 to 1. */
function luminanceOf(rgb: Rgb): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  )
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** Mixes a colour with black or white until it has the luminance. */
function withLuminance(rgb: Rgb, wanted: number): string {
  const target = luminanceOf(rgb) > wanted ? 0 : 1
  const mixed = (share: number): Rgb => {
    const [red = 0, green = 0, blue = 0] = rgb.map((part) => part + (target - part) * share)
    return [red, green, blue]
  }
  let [low, high] = [0, 1]
  for (let step = 0; step < 20; step += 1) {
    const middle = (low + high) / 2
    const isBelow = luminanceOf(mixed(middle)) < wanted
    if (isBelow === (target === 1)) low = middle
    else high = middle
  }
  // The darker end, so that white text keeps its contrast.
  const parts = mixed(target === 0 ? high : low).map((part) => Math.floor(part * 255))
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}
