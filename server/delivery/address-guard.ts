/** Where the operator lets deliveries go. */
export type AddressPolicy = {
  /** `http:` URLs too, not only `https:`. */
  allowHttp: boolean
  /** Loopback, private, link-local and other special-purpose addresses too. */
  allowPrivateNetworks: boolean
}
