import { ApiError, createClient, createPortalClient } from '../api/client.ts'
import type { PortalAccess } from '../api/scope.tsx'

/** A portal session that this page has. */
export type OpenedPortal = {
  access: PortalAccess
  /** Kept in memory alone, where the browser refuses the cookie. Null: the cookie is there. */
  token: string | null
}

/** Returns the id of the portal session in the address of this page, or null for another address. */
export function sessionIdOf({ pathname }: Location): string | null {
  return /^\/portal\/([a-z0-9_]+)/.exec(pathname)?.[1] ?? null
}

/** Returns the code in the address, and takes it out of there: it stays in no history and is copied with no link. */
export function takeCode({ hash, pathname, search }: Location): string | null {
  const code = /^#code=([\w-]+)$/.exec(hash)?.[1] ?? null
  if (code !== null) history.replaceState(null, '', pathname + search)
  return code
}

/**
 * Opens the portal: with the code of a link, or with the cookie of an earlier load of this page. Null: the session has
 * ended, or the link was used.
 */
export async function openPortal(id: string, code: string | null): Promise<OpenedPortal | null> {
  const byCookie = () => orNull(createPortalClient({ id, token: null })('GET /v1/portal-session', {}))
  if (code !== null) {
    const opened = await orNull(createClient(null)('POST /v1/portal-session', { body: { code } }))
    if (opened !== null && opened.id === id) {
      // Whether the browser has taken the cookie, only a request shows.
      const { token, ...access } = opened
      return { access, token: (await byCookie()) === null ? token : null }
    }
  }
  // Where the code was used before, that may have been here: the page was loaded again.
  const access = await byCookie()
  return access && { access, token: null }
}

/** Null: there is no such session or link. */
async function orNull<T>(request: Promise<T>): Promise<T | null> {
  try {
    return await request
  } catch (error) {
    if (error instanceof ApiError && [400, 401, 403, 404].includes(error.status)) return null
    throw error
  }
}
