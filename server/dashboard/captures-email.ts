/** Returns true when the service captures email instead of sending it, as its page says. */
export function capturesEmail(): boolean {
  return document.querySelector<HTMLMetaElement>('meta[name="email"]')?.content === 'captured'
}
