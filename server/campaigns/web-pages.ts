import type { Db } from '../database/connection.ts'
import { findWebMessage } from '../emails/web-messages.ts'
import { createKeyedSemaphore } from '../lib/semaphore.ts'
import type { CampaignPageRef, MailTokens } from '../message/mail-tokens.ts'
import { DomainError } from '../shared/errors.ts'
import { findProperties, valuesInMessages } from '../subscribers/properties.ts'
import type { RendererTurns } from '../templates/renderer-turns.ts'
import { contentOf, variablesOf } from './message.ts'
import { createPageCache } from './page-cache.ts'
import { findAccountName, findCampaignForPage, findWinnerForPage, isCampaignThere } from './queries.ts'
import type { ArchiveUrl } from './to-response.ts'
import { contentsOf, contentWith } from './variants.ts'

/** The page behind a link to read a message in a browser. Everything in a message is untrusted. */
export type WebPage =
  /** `isIndexed`: search engines may list it. */
  | { status: 'shown'; subject: string; html: string | null; text: string | null; isIndexed: boolean }
  /** `unknown`: the link is not whole. `gone`: the message was deleted, or is not public. `busy`: try again. */
  | { status: 'unknown' | 'gone' | 'busy' }

/** Sends a page. Resolves when nothing of it is in memory any more: until then it counts as being read. */
export type SendPage = (page: WebPage) => Promise<void>

/** The messages of campaigns as pages on the web. */
export type WebPages = {
  /** Sends the message as the recipient of an email got it, by the token of `webUrl`. */
  ofEmail(token: string, send: SendPage): Promise<void>
  /** Sends the message of a public campaign as for a person of whom nothing is known, by the token of `archiveUrl`. */
  ofCampaign(token: string, send: SendPage): Promise<void>
}

export type WebPagesOptions = {
  db: Db
  tokens: Pick<MailTokens, 'readMessagePage' | 'readCampaignPage'>
  rendererOf: RendererTurns
  archiveUrl: ArchiveUrl
}

/** Pages that are read at once, of all accounts together and of one: each may be of a megabyte. */
const readAtOnce = { permits: 16, holdersPerKey: 4, waiting: 500 } as const
/** How long a reader waits for others: longer than a client has to read a page (http/web-pages.ts). Milliseconds. */
const patienceMs = 25_000
/** Characters of the rendered pages that a process keeps, of all accounts together and of one. */
const keptCharacters = 8 * 2 ** 20
const keptCharactersOfAccount = keptCharacters / 4
/** How long a rendered page is kept. What may change in it are the fallbacks of properties. Milliseconds. */
const keptMs = 5 * 60_000

const unknown = { status: 'unknown' } as const
const gone = { status: 'gone' } as const
const busy = { status: 'busy' } as const

export function createWebPages({ db, tokens, rendererOf, archiveUrl }: WebPagesOptions): WebPages {
  const turns = createKeyedSemaphore(readAtOnce)
  const pages = createPageCache<WebPage>({
    isKept: (page) => page.status === 'shown',
    sizeOf: (page) => (page.status === 'shown' ? (page.html?.length ?? 0) + (page.text?.length ?? 0) : 0) + 1_000,
    maxSize: keptCharacters,
    maxSizeOfOwner: keptCharactersOfAccount,
    keptMs,
    nowMs: () => performance.now(),
  })

  async function inTurn(accountId: string, send: SendPage, read: () => Promise<WebPage>): Promise<void> {
    const leave = await turns.acquire({ key: accountId }, AbortSignal.timeout(patienceMs))
    if (leave === null) return send(busy)
    try {
      await send(await orBusy(read))
    } finally {
      leave()
    }
  }

  async function render(ref: CampaignPageRef): Promise<WebPage> {
    const row = await findCampaignForPage(db, ref)
    if (row === undefined) return gone
    const { accountId } = ref
    const declared = await findProperties(db, accountId)
    const accountName = await findAccountName(db, accountId)
    const content = contentWith(await contentsOf(db, row), row.ab_winner ?? 0)
    const [rendering] = await rendererOf(accountId).render(contentOf(content), [
      variablesOf(nobody(valuesInMessages({}, declared)), {
        campaign: { ...row, constants: content.constants },
        accountName,
        ...linksOf(archiveUrl(ref)),
      }),
    ])
    // The message was rendered when it was sent. So this is for a while: the time for it was too short, for example.
    if (rendering?.status !== 'rendered') return busy
    return { status: 'shown', ...rendering.rendered, isIndexed: row.mode === 'live' }
  }

  return {
    async ofEmail(token, send) {
      const ref = tokens.readMessagePage(token)
      if (ref === null) return send(unknown)
      return inTurn(ref.accountId, send, async () => {
        const message = await findWebMessage(db, ref)
        if (message === undefined) return gone
        const { campaignId, subject, html, text } = message
        // A test of a campaign is an email of none.
        const isThere = campaignId === null || (await isCampaignThere(db, { accountId: ref.accountId, id: campaignId }))
        return isThere ? { status: 'shown', subject, html, text, isIndexed: false } : gone
      })
    },
    async ofCampaign(token, send) {
      const ref = tokens.readCampaignPage(token)
      if (ref === null) return send(unknown)
      return inTurn(ref.accountId, send, async () => {
        // Looked at each time, so that a page is away as soon as it is not public any more.
        const found = await findWinnerForPage(db, ref)
        if (found === undefined) return gone
        const id = `${ref.accountId} ${ref.campaignId} ${found.ab_winner}`
        return pages.get({ owner: ref.accountId, id }, () => render(ref))
      })
    },
  }
}

async function orBusy(read: () => Promise<WebPage>): Promise<WebPage> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof DomainError && error.code === 'unavailable') return busy
    throw error
  }
}

function nobody(properties: ReturnType<typeof valuesInMessages>) {
  return { id: null, email: '', firstName: null, lastName: null, properties }
}

/** The links in the page for everybody lead to nobody's preferences. */
function linksOf(page: string) {
  return { unsubscribeUrl: `${page}/unsubscribe`, webUrl: page }
}
