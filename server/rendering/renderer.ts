import type { MessageCheckCode } from './check-message.ts'
import type { BatchLimits, RenderResult } from './frames.ts'
import { renderingLimits } from './limits.ts'
import type { CompiledMjml } from './mjml.ts'
import { createProcessPool } from './process-pool.ts'
import { startRenderProcess } from './render-process.ts'

/** Content that is written once for all recipients: Liquid in each part. At least one of `html` and `text`. */
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
  /**
   * As `render`, for as many of the first people as one request to a process and `limits` allow, and for one at least.
   * Returns their renderings only: nothing was tried for the others.
   */
  renderFirst(
    content: TemplateContent,
    people: readonly Variables[],
    limits?: Partial<BatchLimits>,
  ): Promise<Rendering[]>
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
  /** Time limit for one such request: the next one begins with those who are left. Milliseconds. Default: 20,000. */
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
  const pool = createProcessPool({ processes, heapMebibytes, itemLimitMs, start })
  const usualLimits = { timeMs: batchLimitMs, outputLength: renderingLimits.batchOutputLength }

  /** Returns as many of the first people as one request takes, as JSON; a string: what is wrong with it. */
  function requestOf(people: readonly Variables[]): (Buffer | string)[] {
    const request: (Buffer | string)[] = []
    let bytes = 0
    for (const person of people) {
      if (request.length === peopleAtOnce || bytes >= batchVariableBytes) break
      const variables = jsonOf(person)
      request.push(variables)
      bytes += variables.length
    }
    return request
  }

  /** Renders for the first of the people in a request, and for one at least. */
  async function renderRequest(
    content: Buffer,
    request: readonly (Buffer | string)[],
    limits: BatchLimits,
  ): Promise<Rendering[]> {
    const items = request.filter((one) => typeof one !== 'string')
    const results = await pool.run({ task: 'render', content, items, limits })
    const renderings: Rendering[] = []
    for (const one of request) {
      const result = typeof one === 'string' ? { ok: false as const, reason: one } : results.shift()
      if (result === undefined) break
      renderings.push(renderingOf(result))
    }
    return renderings
  }

  return {
    async render(content, people) {
      const json = jsonOfContent(content)
      const renderings: Rendering[] = new Array(people.length)
      let next = 0
      const work = async () => {
        while (next < people.length) {
          let index = next
          let request = requestOf(people.slice(index, index + peopleAtOnce))
          next += request.length
          while (request.length > 0) {
            const some = await renderRequest(json, request, usualLimits)
            for (const one of some) renderings[index++] = one
            request = request.slice(some.length)
          }
        }
      }
      await Promise.all(Array.from({ length: processes }, work))
      return renderings
    },
    async renderFirst(content, people, limits) {
      return renderRequest(jsonOfContent(content), requestOf(people), { ...usualLimits, ...limits })
    },
    async faultOf(content) {
      const [result] = await pool.run({
        task: 'compile',
        content: jsonOfContent(content),
        items: [nothing],
        limits: usualLimits,
      })
      return result?.ok === false ? result.reason : null
    },
    async compileMjml(mjml) {
      const item = Buffer.from(JSON.stringify(mjml.slice(0, renderingLimits.sourceLength + 1)))
      const request = { task: 'mjml', content: nothing, items: [item], limits: usualLimits } as const
      const [result] = await pool.run(request, mjmlLimitMs)
      if (result?.ok !== true) return { html: null, faults: [{ line: null, message: notCompiled(result?.reason) }] }
      const [html = null, faults = null] = result.texts
      return html === null ? { html, faults: JSON.parse(faults ?? '[]') } : { html, faults: null }
    },
    async check({ html, text }) {
      const [result] = await pool.run({
        task: 'check',
        content: nothing,
        items: [Buffer.from(JSON.stringify({ html, text }))],
        limits: usualLimits,
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

function renderingOf(result: RenderResult): Rendering {
  if (!result.ok) return { status: 'failed', reason: result.reason }
  const [subject = '', html = null, text = null] = result.texts
  return { status: 'rendered', rendered: { subject: subject ?? '', html, text } }
}

/** In one order, so that equal contents have the same JSON. What is too long for any template is cut. */
function jsonOfContent({ subject, preheader, html, text }: TemplateContent): Buffer {
  const cut = (value: string) => value.slice(0, 2 * renderingLimits.sourceLength)
  const cutOrNull = (value: string | null) => (value === null ? null : cut(value))
  const parts = { subject: cut(subject), preheader: cutOrNull(preheader), html: cutOrNull(html), text: cutOrNull(text) }
  return Buffer.from(JSON.stringify(parts))
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
