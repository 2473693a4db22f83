/**
 * What makes two addresses the same: everything but letter case, in the local part too. RFC 5321
 * §2.4 lets a host tell `Ada@` from `ada@`, but none that matters does, and two subscribers for one
 * mailbox would get everything twice. Dots and `+tags` are kept: what they mean differs by host.
 */
export function addressKey(address: string): string {
  return address.toLowerCase()
}
