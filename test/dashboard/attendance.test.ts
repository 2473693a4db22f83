import { expect, test } from 'vitest'
import { attendedMs, isAttended, watchAttendance } from '../../server/dashboard/api/attendance.ts'

const page = new EventTarget()
watchAttendance(page)

test.each(['keydown', 'pointerdown', 'wheel', 'focus', 'visibilitychange'])(
  'a page is attended for a minute after %s',
  (sign) => {
    expect(isAttended(performance.now() + 10 * attendedMs)).toBe(false)
    page.dispatchEvent(new Event(sign))
    const now = performance.now()
    expect(isAttended(now + attendedMs - 1_000)).toBe(true)
    expect(isAttended(now + attendedMs)).toBe(false)
  },
)

test('movements of the pointer are no use: a page that changes below it has them too', () => {
  const before = performance.now() + attendedMs
  page.dispatchEvent(new Event('pointermove'))
  expect(isAttended(before)).toBe(false)
})
