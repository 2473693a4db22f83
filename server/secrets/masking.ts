/** Patterns of secrets. Each keeps the part that shows the kind of secret. */
const secrets: readonly [pattern: RegExp, replacement: string][] = [
  [/\b(postern_(?:test|live)_)[\w-]+/g, '$1***'],
  [/\b(whsec_)[\w+/=-]+/g, '$1***'],
  // Of links that work once, of sessions, and of what a browser carries to the identity provider.
  [/\b(token=|postern_session=|postern_provider=)[\w-]+/g, '$1***'],
  // Of a link to the portal.
  [/(#code=)[\w-]+/g, '$1***'],
  // A token of the portal, and its cookie, whose name ends with the id of the session.
  [/\b(postern_portal_(?:[a-z\d]{26}=(?:postern_portal_)?)?)[\w-]+/g, '$1***'],
  [/\b(Bearer|Basic)( +|%20)[^\s"\\,]+/gi, '$1$2***'],
  // The password in a URL, such as that of the database.
  [/(:\/\/[^\s:/?#@"\\]*:)[^\s/?#@"\\]+(?=@)/g, '$1***'],
]

/** Returns `text` with everything that looks like a secret replaced by `***`. */
export function maskSecrets(text: string): string {
  let masked = text
  for (const [pattern, replacement] of secrets) masked = masked.replace(pattern, replacement)
  return masked
}
