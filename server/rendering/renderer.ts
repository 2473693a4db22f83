import type { MessageCheckCode } from './check-message.ts'
import type { RenderResult } from './frames.ts'
import { renderingLimits } from './limits.ts'
import type { CompiledMjml } from './mjml.ts'
import { createProcessPool, type ProcessPool } from './process-pool.ts'
import { startRenderProcess } from './render-process.ts'

/** What is written once for all recipients: Liquid in each part. At least one of `html` and `text`. */
export type TemplateContent = { subject: string; preheader: string | null; html: string | null; text: string | null }

/** Values for one rendering: JSON objects by name. */
export type Variables = Readonly<Record<string, unknown>>

export type Rendered = { subject: string; html: string | null; text: string | null }

/** `reason`: for people, with the line where there is one. */
export type Rendering = { status: 'rendered'; rendered: Rendered } | { status: 'failed'; reason: string }

/** Renders Liquid in processes of its own, so that no template can use up the time or the memory of the service. */
export type Renderer = {
  /**
   * Renders `content` once for each entry of `people`, in order. Compiles it once. Text that is null is made from the
   * HTML. Never rejects for a fault of the content: what fails for one person fails for that person only. Rejects when
   * no process could be started, and after the renderer was disposed of.
   */
  render(content: TemplateContent, people: readonly Variables[]): Promise<Rendering[]>
  [Symbol.asyncDispose](): Promise<void>
}

/** A renderer with what is needed to write templates. */
export type TemplateRenderer = Renderer & {
  /** Returns the fault because of which the content does not compile. Null: it compiles. */
  faultOf(content: TemplateContent): Promise<string | null>
  /** Compiles MJML with Liquid to HTML with the same Liquid, or says what is wrong with it, line by line. */
  compileMjml(mjml: string): Promise<CompiledMjml>
  /** Notes what mail programs and spam filters dislike about a rendered message. */
  check(message: Pick<Rendered, 'html' | 'text'>): Promise<MessageCheck[]>
}

/** Something about a message. `line`: in its HTML; null: the whole. `message`: null where the code says it all. */
export type MessageCheck = {
  code: MessageCheckCode | 'no_unsubscribe_link'
  line: number | null
  message: string | null
}

export type RendererOptions = {
  /** Most processes. Each starts when it is needed and stays. Default: 1. */
  processes?: number
  /** Maximum heap of a process. MiB. Default: 128. */
  heapMebibytes?: number
  /** Time limit for rendering one person's message; the process is then ended. Milliseconds. Default: 2,000. */
  personLimitMs?: number
  /** People in one request to a process. Another account may have the next request. Default: 100. */
  peopleAtOnce?: number
  /** Time limit for one such request: those not rendered by then fail. Milliseconds. Default: 20,000. */
  batchLimitMs?: number
  /** Time limit for compiling MJML, with the loading of the compiler. Milliseconds. Default: 5,000. */
  mjmlLimitMs?: number
  /** Starts a process, for tests. */
  start?: typeof startRenderProcess
}

/** The usual time limit for rendering one person's message. Milliseconds. */
export const personLimitMs = 2_000

/** Most bytes of the variables in one request to a process, but for one person. */
const batchVariableBytes = 1_048_576

/** Creates a renderer. No process is started before it is needed. */
export function createRenderer(options: RendererOptions = {}): TemplateRenderer {
  const { processes = 1, heapMebibytes = 128, peopleAtOnce = 100, batchLimitMs = 20_000 } = options
  const { start = startRenderProcess, mjmlLimitMs = renderingLimits.mjmlMs } = options
  const itemLimitMs = options.personLimitMs ?? personLimitMs
  const pool = createProcessPool({ processes, heapMebibytes, itemLimitMs, batchLimitMs, start })
  return {
    async render(content, people) {
      const json = Buffer.from(JSON.stringify(contentOf(content)))
      const renderings: Rendering[] = new Array(people.length)
      let next = 0
      const work = async () => {
        while (next < people.length) {
          const items: { index: number; variables: Buffer }[] = []
          let bytes = 0
          while (next < people.length && items.length < peopleAtOnce && bytes < batchVariableBytes) {
            const index = next++
            const variables = jsonOf(people[index] ?? {})
            if (typeof variables === 'string') renderings[index] = { status: 'failed', reason: variables }
            else items.push({ index, variables })
            bytes += variables.length
          }
          await renderBatch(pool, { content: json, items, renderings })
        }
      }
      await Promise.all(Array.from({ length: processes }, work))
      return renderings
    },
    async faultOf(content) {
      const json = Buffer.from(JSON.stringify(contentOf(content)))
      const [result] = await pool.run({ task: 'compile', content: json, items: [nothing] })
      return result?.ok === false ? result.reason : null
    },
    async compileMjml(mjml) {
      const item = Buffer.from(JSON.stringify(mjml.slice(0, renderingLimits.sourceLength + 1)))
      const [result] = await pool.run({ task: 'mjml', content: nothing, items: [item] }, mjmlLimitMs)
      if (result?.ok !== true) return { html: null, faults: [{ line: null, message: notCompiled(result?.reason) }] }
      const [html = null, faults = null] = result.texts
      return html === null ? { html, faults: JSON.parse(faults ?? '[]') } : { html, faults: null }
    },
    async check({ html, text }) {
      const [result] = await pool.run({
        task: 'check',
        content: nothing,
        items: [Buffer.from(JSON.stringify({ html, text }))],
      })
      return result?.ok === true ? JSON.parse(result.texts[0] ?? '[]') : []
    },
    [Symbol.asyncDispose]: () => pool.stop(),
  }
}

const nothing = Buffer.alloc(0)

/** @param reason Why its process could not finish. */
function notCompiled(reason = 'Rendering ended.'): string {
  return `${reason.replace(/^Rendering/, 'Compiling the MJML').replace(/\.$/, '')}: write less of it.`
}

type Batch = { content: Buffer; items: readonly { index: number; variables: Buffer }[]; renderings: Rendering[] }

async function renderBatch(pool: ProcessPool, { content, items, renderings }: Batch): Promise<void> {
  const results = await pool.run({ task: 'render', content, items: items.map(({ variables }) => variables) })
  for (const [position, { index }] of items.entries()) {
    const result = results[position]
    if (result !== undefined) renderings[index] = renderingOf(result)
  }
}

function renderingOf(result: RenderResult): Rendering {
  if (!result.ok) return { status: 'failed', reason: result.reason }
  const [subject = '', html = null, text = null] = result.texts
  return { status: 'rendered', rendered: { subject: subject ?? '', html, text } }
}

/** In one order, so that equal contents have the same JSON. What is too long for any template is cut. */
function contentOf({ subject, preheader, html, text }: TemplateContent): TemplateContent {
  const cut = (value: string) => value.slice(0, 2 * renderingLimits.sourceLength)
  const cutOrNull = (value: string | null) => (value === null ? null : cut(value))
  return { subject: cut(subject), preheader: cutOrNull(preheader), html: cutOrNull(html), text: cutOrNull(text) }
}

/** Returns variables as JSON in UTF-8; a string: what is wrong with them. */
function jsonOf(variables: Variables): Buffer | string {
  let json: string
  try {
    json = JSON.stringify(variables)
  } catch (error) {
    return `The variables are not JSON: ${error instanceof Error ? error.message.split('\n')[0] : 'unknown fault'}.`
  }
  const bytes = Buffer.from(json)
  if (bytes.length <= renderingLimits.variablesBytes) return bytes
  return `The variables are longer than ${renderingLimits.variablesBytes} bytes of JSON.`
}
