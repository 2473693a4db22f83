/** Returns the nonce of this page, which its Content-Security-Policy asks of style elements. */
export function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.nonce ?? ''
}
