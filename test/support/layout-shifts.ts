import type { Page } from 'playwright-core'

const observe = `
  globalThis.shifts = []
  new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries()) {
      const what = sources.map(({ node }) => (node?.outerHTML ?? node?.textContent ?? '').slice(0, 120))
      globalThis.shifts.push({ value, at: location.pathname, what })
    }
  }).observe({ type: 'layout-shift', buffered: true })
`

/**
 * Adds up how far what is shown moves by itself, also within the half second after a key, which the score of browsers
 * leaves out: here every change follows a key.
 *
 * Returns a function that returns the sum since the page was loaded or since the last call, and what moved.
 */
export async function watchShifts(page: Page): Promise<() => Promise<{ moved: number; shifts: string }>> {
  await page.addInitScript(observe)
  return async () => {
    // Shifts are told after the frame.
    const shifts = await page.evaluate<{ value: number }[]>(
      'new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(globalThis.shifts.splice(0)))))',
    )
    const isWatched = await page.evaluate("PerformanceObserver.supportedEntryTypes.includes('layout-shift')")
    if (isWatched !== true) throw new Error('the browser tells no layout shifts')
    return { moved: shifts.reduce((sum, { value }) => sum + value, 0), shifts: JSON.stringify(shifts, null, 1) }
  }
}
