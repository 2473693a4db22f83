import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A file of the built dashboard, in memory with its compressed forms. */
export type BuiltFile = {
  contentType: string
  /** By content coding: `identity`, and `br` and `gzip` where the build made them. */
  bodies: Readonly<Partial<Record<Coding, Buffer>>> & { identity: Buffer }
  /** Whether the name changes with the content, so that it may be cached for ever. */
  isHashed: boolean
}

export type Coding = 'br' | 'gzip' | 'identity'

export type BuiltDashboard = {
  /** The page, with `__NONCE__` where each response has its nonce. */
  page: string
  /** The page of the portal, likewise. */
  portalPage: string
  /** All other files by their path below `/app/`. */
  files: ReadonlyMap<string, BuiltFile>
}

const contentTypes: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/**
 * Reads the built dashboard from `folder`. Null: it is not built.
 *
 * The files are served from memory, by name, so that no request can reach another file.
 */
export function readBuiltDashboard(folder: string): BuiltDashboard | null {
  let page: string
  let portalPage: string
  try {
    page = readFileSync(join(folder, 'index.html'), 'utf8')
    portalPage = readFileSync(join(folder, 'portal.html'), 'utf8')
  } catch {
    return null
  }
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'))
  const present = new Set(names)
  const files = new Map<string, BuiltFile>()
  for (const name of names) {
    const contentType = contentTypes[name.slice(name.lastIndexOf('.') + 1)]
    if (contentType === undefined) continue
    const read = (suffix: string) => readFileSync(join(folder, name + suffix))
    files.set(name, {
      contentType,
      bodies: {
        identity: read(''),
        ...(present.has(`${name}.br`) && { br: read('.br') }),
        ...(present.has(`${name}.gz`) && { gzip: read('.gz') }),
      },
      isHashed: name.startsWith('assets/'),
    })
  }
  return { page, portalPage, files }
}
