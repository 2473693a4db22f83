import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Express, RequestHandler } from 'express'
import { sendStaticPage, sendStaticText, sendTextOnDemand } from './static-responses.ts'

/** Everything comes from this server, and nothing is inline. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // Swagger UI draws its icons with data: URLs.
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

// The addresses are relative, so that the page also works behind a proxy that adds a prefix.
const pageBelow = (root: string) => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Postern API</title>
    <link rel="icon" type="image/png" href="${root}docs/favicon-32x32.png">
    <link rel="stylesheet" href="${root}docs/swagger-ui.css">
    <link rel="stylesheet" href="${root}docs/page.css">
  </head>
  <body>
    <noscript>This page needs JavaScript. The same description for programs is <a href="${root}openapi.json">openapi.json</a>.</noscript>
    <div id="docs" data-spec="${root}openapi.json"></div>
    <script src="${root}docs/swagger-ui-bundle.js"></script>
    <script src="${root}docs/page.js"></script>
  </body>
</html>
`

const style = `body {
  margin: 0;
}

noscript {
  display: block;
  padding: 2rem;
  font-family: sans-serif;
}
`

// A key is kept only while the page is open. The document is not sent to an external validator.
const script = `SwaggerUIBundle({
  url: document.getElementById('docs').dataset.spec,
  dom_id: '#docs',
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  persistAuthorization: false,
  validatorUrl: null,
})
`

/** The files of Swagger UI that the page needs. The package has ten times as many. */
const assets = ['swagger-ui-bundle.js', 'swagger-ui.css', 'favicon-32x32.png'] as const

const assetCaching = 'public, max-age=3600'

/**
 * Serves the documentation under `/docs` and its OpenAPI document at `/openapi.json`. Redirects `/` to the
 * dashboard in a browser, else to `/docs`. Returns the paths, which have GET only.
 *
 * @param document Makes the OpenAPI document. Called once, for the first request.
 */
export function serveDocs(app: Express, document: () => Promise<object>): string[] {
  const { directory, version } = swaggerUi()
  const handlers: Record<string, RequestHandler> = {
    // Browsers ask for HTML by name, programs for anything.
    '/': (req, res) => res.vary('Accept').redirect(req.headers.accept?.includes('text/html') ? '/app' : '/docs'),
    '/openapi.json': sendTextOnDemand('application/json; charset=utf-8', async () => JSON.stringify(await document())),
    '/docs': sendStaticPage(pageBelow(''), contentSecurityPolicy),
    '/docs/': sendStaticPage(pageBelow('../'), contentSecurityPolicy),
    '/docs/page.css': sendStaticText('text/css; charset=utf-8', style),
    '/docs/page.js': sendStaticText('text/javascript; charset=utf-8', script),
  }
  for (const name of assets) {
    handlers[`/docs/${name}`] = (_req, res) => {
      res.setHeader('ETag', `"${version}"`)
      res.sendFile(join(directory, name), { cacheControl: false, headers: { 'Cache-Control': assetCaching } })
    }
  }
  for (const [path, handler] of Object.entries(handlers)) app.get(path, handler)
  return Object.keys(handlers)
}

/** Returns the directory and version of the package without loading its code. */
function swaggerUi(): { directory: string; version: string } {
  const require = createRequire(import.meta.url)
  const manifest = require.resolve('swagger-ui-dist/package.json')
  const { version }: { version: string } = require(manifest)
  return { directory: dirname(manifest), version }
}
