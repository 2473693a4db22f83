/**
 * What a terminal obeys rather than shows (C0, DEL, C1), what begins a line (U+2028, U+2029), and what
 * turns the direction of the text around it, so that it reads as something else.
 *
 * Source: ECMA-48 §5.2, §5.3; Unicode Standard Annex #9, table 4.
 */
const unprintable = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** One line of `text` with `\u001b` and the like in the place of what is not to reach a terminal as it is. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
