/** Returns true when the public DNS can have this host name. The local name of a machine often has no dot. */
export function isPublicHostName(hostname: string): boolean {
  return hostname.includes('.')
}
