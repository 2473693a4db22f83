const units = ['bytes', 'kB', 'MB', 'GB']

/** Returns a size in bytes as people read it, in decimal units. */
export function sizeOf({ size }: { size: number }): string {
  const step = Math.min(Math.floor(Math.log10(Math.max(size, 1)) / 3), units.length - 1)
  return `${step === 0 ? size : (size / 1000 ** step).toFixed(1)} ${units[step]}`
}
