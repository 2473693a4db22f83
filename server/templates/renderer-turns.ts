import { createKeyedSemaphore } from '../lib/semaphore.ts'
import type { TemplateRenderer } from '../rendering/renderer.ts'
import { DomainError } from '../shared/errors.ts'

/** How long a call waits for earlier ones of its account. Milliseconds. */
const patienceMs = 30_000
/** Calls of all accounts that wait. One account may have half of the places that are left. */
const waiting = 1_000

/** The operations of the renderer that an account may use. */
export type AccountRenderer = Pick<TemplateRenderer, 'render' | 'faultOf' | 'compileMjml' | 'check'>

/** Returns the renderer as an account may use it. */
export type RendererTurns = (accountId: string) => AccountRenderer

/**
 * Returns the renderer as each account may use it: one call of an account at a time. The processes take requests in
 * order, so an account has at most one in front of those of others, however many templates it sends. Create it once for a
 * renderer: what is created again does not know of these turns.
 *
 * Calls throw `unavailable` when they have waited too long, or too many wait.
 */
export function createRendererTurns(renderer: AccountRenderer): RendererTurns {
  const turns = createKeyedSemaphore({ permits: waiting, holdersPerKey: 1, waiting })

  async function inTurn<T>(accountId: string, work: () => Promise<T>): Promise<T> {
    const leave = await turns.acquire({ key: accountId }, AbortSignal.timeout(patienceMs))
    if (leave === null) throw tooMany
    try {
      return await work()
    } finally {
      leave()
    }
  }

  return (accountId) => ({
    render: (content, people) => inTurn(accountId, () => renderer.render(content, people)),
    faultOf: (content) => inTurn(accountId, () => renderer.faultOf(content)),
    compileMjml: (mjml) => inTurn(accountId, () => renderer.compileMjml(mjml)),
    check: (message) => inTurn(accountId, () => renderer.check(message)),
  })
}

const tooMany = new DomainError(
  'unavailable',
  'Templates of an account are rendered one after the other, and too many wait: send fewer at once, make the templates faster, or try again.',
  { retryAfterSeconds: 10 },
)
