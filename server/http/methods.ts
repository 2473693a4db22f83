import { type AppRouter, isAppRoute } from '@ts-rest/core'
import type { IRouter } from 'express'
import { DomainError } from '../shared/errors.ts'

/** Returns the paths of a contract, each with its methods. */
export function pathsOf(contract: AppRouter): Map<string, string[]> {
  const paths = new Map<string, string[]>()
  collectPaths(contract, paths)
  return paths
}

function collectPaths(contract: AppRouter, paths: Map<string, string[]>): void {
  for (const entry of Object.values(contract)) {
    if (!isAppRoute(entry)) collectPaths(entry, paths)
    else paths.set(entry.path, [...(paths.get(entry.path) ?? []), entry.method])
  }
}

/** Refuses all methods except `methods` on `path`, and lists the allowed ones. GET includes HEAD. */
export function refuseOtherMethods(router: IRouter, path: string, methods: readonly string[]): void {
  const allowed = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  router.all(path, (req, res, next) => {
    if (allowed.includes(req.method)) return next()
    const told = allowed.join(', ')
    res.setHeader('Allow', told)
    throw new DomainError('method_not_allowed', `This path has no ${req.method}: it has ${told}.`)
  })
}
