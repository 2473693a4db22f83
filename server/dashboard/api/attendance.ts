/** Milliseconds after a sign of use during which the page counts as used. */
export const attendedMs = 60_000

/** Events that count as use. No pointer movements: browsers report some when the page moves below the pointer. */
const signs = ['keydown', 'pointerdown', 'wheel', 'focus', 'visibilitychange'] as const

/** When the page was last used, by the clock of `performance`. It was when it was loaded. */
let usedAt = 0

/** Notes from now on when the page is used. */
export function watchAttendance(target: EventTarget): void {
  const note = () => {
    usedAt = performance.now()
  }
  for (const sign of signs) target.addEventListener(sign, note, { capture: true, passive: true })
}

/**
 * Returns whether somebody has used the page lately. Otherwise its requests are those of timers and streams, which must
 * not keep a session from ending.
 *
 * @param now Milliseconds by the clock of `performance`.
 */
export function isAttended(now: number = performance.now()): boolean {
  return now - usedAt < attendedMs
}
