/** Returns the address that a link of a message leads to, as the browser goes to it. Null: no site and no mailbox. */
export function linkTarget(href: string | null): string | null {
  const url = href?.trim() ?? ''
  // As the browser goes to it: a text may show another host than it has.
  return /^(?:https?|mailto):/i.test(url) && URL.canParse(url) ? new URL(url).href : null
}
