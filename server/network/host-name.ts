/** Whether the public DNS can have a host of this name. What machines are called by themselves often has no dot. */
export function isPublicHostName(hostname: string): boolean {
  return hostname.includes('.')
}
