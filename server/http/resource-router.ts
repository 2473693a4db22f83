import { Router } from 'express'

/**
 * Creates a router that sorts its routes by their resource, the first two segments of a path. A request is compared with
 * the routes of its resource only: Express compares it with one route after the other, and there are some 300.
 *
 * The first two segments of a route must be plain text: adding another one throws.
 */
export function createResourceRouter(): Router {
  const options = { caseSensitive: true, strict: true }
  const routers = new Map<string, Router>()
  const router = Router(options)
  router.use((req, res, next) => {
    const ofResource = routers.get(resourceOf(req.path))
    if (ofResource === undefined) next()
    else ofResource(req, res, next)
  })
  // Express adds every route with this method, also those of `router.get(path)`.
  router.route = (path: string) => {
    const resource = resourceOf(path)
    if (/[:*{]/.test(resource)) throw new Error(`a route must begin with two segments of plain text: ${path}`)
    const ofResource = routers.get(resource) ?? Router(options)
    routers.set(resource, ofResource)
    return ofResource.route(path)
  }
  return router
}

/** Returns `/v1/webhooks` for `/v1/webhooks/:id`. */
function resourceOf(path: string): string {
  const end = path.indexOf('/', path.indexOf('/', 1) + 1)
  return end === -1 ? path : path.slice(0, end)
}
