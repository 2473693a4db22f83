const quote = 0x22
const backslash = 0x5c

/**
 * How many bytes of JSON text are not inside its strings: its brackets, numbers, commas and quotation marks.
 * Parsed, each of them can take many times its size, where a string takes little more than its own.
 *
 * @param enough Stops counting there.
 */
export function structuralBytes(json: Buffer, enough: number): number {
  let count = 0
  let isInString = false
  for (let index = 0; index < json.length && count < enough; index++) {
    const byte = json[index]
    if (byte === quote) isInString = !isInString
    else if (isInString && byte === backslash) index++
    if (!isInString || byte === quote) count++
  }
  return count
}
