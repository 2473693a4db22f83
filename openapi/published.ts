import type { OpenAPIObject } from 'openapi3-ts/oas31'
import { contract } from '../contract/index.ts'
import manifest from '../package.json' with { type: 'json' }
import { createDocument } from './document.ts'

/**
 * The document of this version of the service, made from the contract it runs with (some 100 ms):
 * what is served cannot differ from what is answered. `openapi.json` is the same document, committed.
 *
 * `serverUrl` is how clients reach the service, where that is known; by default the address the
 * document came from.
 */
export function publishedDocument(options: { serverUrl?: string } = {}): OpenAPIObject {
  return createDocument({ contract, version: manifest.version, ...options })
}
