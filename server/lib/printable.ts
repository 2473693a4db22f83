/**
 * Control characters (C0, DEL, C1), line separators (U+2028, U+2029) and bidirectional controls, which can make text
 * read as something else.
 *
 * Source: ECMA-48 §5.2, §5.3; Unicode Standard Annex #9, table 4.
 */
const unprintable = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Returns `text` on one line, safe for a terminal: unsafe characters become escapes such as `\u001b`. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
