/**
 * The most characters of HTML that are previewed. Mail programs cut a message at about half of it. A hostile message must
 * not keep the browser busy.
 */
export const previewLimit = 200_000

/** A tag. `<` ends it outside of quotes: else each `<a` of `<a<a<a…` would read to the end of the message. */
const tag = /<[a-z](?:"[^"]*"|'[^']*'|[^'"<>])*>/gi

/** Returns `html` with style attributes named `data-style`, and with `nonce` on style elements. Takes linear time. */
export function withStylesRenamed(html: string, nonce: string): string {
  return html.replace(tag, (text) =>
    text.replace(/(\s)style(?=\s*=)/i, '$1data-style').replace(/^<style\b/i, `<style nonce="${nonce}"`),
  )
}
