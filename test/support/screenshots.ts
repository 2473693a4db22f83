import { join } from 'node:path'
import type { Page } from 'playwright-core'

/** The folder for screenshots. Not set: none are taken, which takes less time. */
const folder = process.env.SCREENSHOTS

/**
 * Keeps what a page shows, in light and in dark, as `name-<width>-<scheme>.png` in the folder that `SCREENSHOTS` names.
 *
 * @param name A path is fine: identifiers in it are left out, and slashes become dashes.
 */
export async function keepScreenshots(page: Page, name: string): Promise<void> {
  if (folder === undefined) return
  const file = name.replaceAll(/\/[a-z]+_[0-9a-z]{26}/g, '/one').replaceAll(/[^\w.-]+/g, '-')
  const { width } = page.viewportSize() ?? { width: 0 }
  const isDark = await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
  // Its own last, so that the page is as it was.
  for (const colorScheme of isDark ? (['light', 'dark'] as const) : (['dark', 'light'] as const)) {
    await page.emulateMedia({ colorScheme })
    await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor()
    // Colours change by and by.
    await page.evaluate(
      'for (const change of document.getAnimations()) if (change instanceof CSSTransition) change.finish()',
    )
    await page.screenshot({ path: join(folder, `${file}-${width}-${colorScheme}.png`), animations: 'disabled' })
  }
}
