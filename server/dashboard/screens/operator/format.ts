const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const

/** Returns a time span in its largest unit, rounded down: 3,700 as "1 hour". */
export function durationOf(seconds: number): string {
  const [name, size] = units.find(([, of]) => seconds >= of) ?? ['second', 1]
  const count = Math.floor(seconds / size)
  return `${count} ${name}${count === 1 ? '' : 's'}`
}

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const
const digits = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

/** Returns bytes in the largest unit with three digits: 98,304,000 as "93.8 MiB". */
export function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(byteUnits.length - 1, Math.floor(Math.log2(bytes) / 10))
  return `${digits.format(bytes / 1_024 ** power)} ${byteUnits[power]}`
}

const counts = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

/** Returns an estimated number with three digits: 123,456 as "123,000". */
export function aboutCount(count: number): string {
  return counts.format(count)
}
