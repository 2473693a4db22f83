import { describe, expect, test } from 'vitest'
import { createPortalCookies } from '../../server/http/portal-cookies.ts'
import type { RouteRequest } from '../../server/http/route-handler.ts'

type Given = { cookie?: string; host?: string; protocol?: 'http' | 'https' }

/** The parts of a request that cookies are read from. */
function request({ cookie = '', host = '127.0.0.1:3000', protocol = 'http' }: Given): RouteRequest {
  return { headers: { cookie }, protocol, get: () => host } as unknown as RouteRequest
}

const suffixOf = (number: number) => `01jqz4x7m8e5v9t2k6r3w0y${String(number).padStart(3, '0')}`
const session = (number: number) => ({ id: `psn_${suffixOf(number)}`, token: `token-${number}` })
const cookies = createPortalCookies(null)

describe('the cookie of a portal session', () => {
  test.each([
    [
      'over TLS',
      { protocol: 'https', host: 'mail.example.com' } as const,
      '__Host-',
      'SameSite=None; Secure; Partitioned',
    ],
    ['from a loopback address', { host: '127.0.0.1:3000' }, '', 'SameSite=None; Secure; Partitioned'],
    ['from localhost', { host: 'localhost:3000' }, '', 'SameSite=None; Secure; Partitioned'],
    ['from another host without TLS', { host: '192.168.0.7:3000' }, '', 'SameSite=Lax'],
    ['from a host that is none', { host: '' }, '', 'SameSite=Lax'],
  ])('%s is one that the browser takes', (_, given, prefix, place) => {
    expect(cookies.write(request(given), session(1))).toEqual([
      `${prefix}postern_portal_${suffixOf(1)}=token-1; Path=/; Max-Age=86400; HttpOnly; ${place}`,
    ])
  })

  test('the cookie of a portal session is one over TLS behind a proxy that the service does not trust, by PUBLIC_URL', () => {
    const [cookie] = createPortalCookies('https://mail.example.com').write(request({}), session(1))
    expect(cookie).toMatch(/^__Host-/)
  })

  test('the cookie of a portal session is read by the id of the session, once', () => {
    const one = `postern_portal_${suffixOf(1)}=token-1`
    expect(cookies.read(request({ cookie: `a=b; ${one}` }), session(1).id)).toBe('token-1')
    expect(cookies.read(request({ cookie: one }), session(2).id)).toBeNull()
    expect(cookies.read(request({ cookie: `${one}; ${one}2` }), session(1).id)).toBeNull()
    expect(cookies.read(request({ cookie: 'postern_portal_=x' }), 'psn_')).toBeNull()
    // Any host of the domain could have set this one.
    expect(cookies.read(request({ cookie: one, protocol: 'https' }), session(1).id)).toBeNull()
  })

  test('the cookie of a portal session takes the place of the oldest beyond eight', () => {
    const held = [5, 3, 9, 4, 8, 7, 6, 2].map((number) => `postern_portal_${suffixOf(number)}=x`).join('; ')
    const set = cookies.write(request({ cookie: `${held}; postern_session=y` }), session(10))
    expect(set).toEqual([
      expect.stringMatching(`^postern_portal_${suffixOf(2)}=; Path=/; Max-Age=0; `),
      expect.stringMatching(`^postern_portal_${suffixOf(10)}=token-10; `),
    ])
  })
})
