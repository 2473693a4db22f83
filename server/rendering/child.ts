import { readSync, writeSync } from 'node:fs'
import { checkMessage } from './check-message.ts'
import { createFrameReader, type RenderResult, readRequest, type Task, writeEnd, writeResult } from './frames.ts'
import { lengthOfTexts } from './limits.ts'
import { compileMjml } from './mjml.ts'
import { createTemplateEngine } from './template-engine.ts'

/*
 * The program of a rendering process. Reads requests from standard input and writes one result for each item to
 * standard output, in order, until a limit of the request is reached. Both block: what the service has read says exactly
 * which item is at work when it ends this process. The first frame says that it is ready.
 */

const stdin = 0
const stdout = 1

const engine = createTemplateEngine()

type Work = (item: string) => RenderResult | Promise<RenderResult>

/** Prepares the content of a request. What is wrong with it is the result of each item. */
const prepare: Record<Task, (content: string) => Work> = {
  render: (content) => {
    const template = engine.compile(content)
    return (item) => template.render(JSON.parse(item))
  },
  compile: (content) => {
    const { fault } = engine.compile(content)
    return () => fault ?? { ok: true, texts: [] }
  },
  // Each item is a message.
  check: () => (item) => ({ ok: true, texts: [JSON.stringify(checkMessage(JSON.parse(item)))] }),
  // Each item is a source, as a JSON string.
  mjml: () => async (item) => {
    const { html, faults } = await compileMjml(JSON.parse(item))
    return { ok: true, texts: [html, faults && JSON.stringify(faults)] }
  },
}

async function handle(body: Buffer): Promise<void> {
  const { task, content, items, limits } = readRequest(body)
  const deadline = performance.now() + limits.timeMs
  const work = prepare[task](content.toString('utf8'))
  let length = 0
  for (const [index, item] of items.entries()) {
    const isOver = length >= limits.outputLength || performance.now() >= deadline
    if (isOver && index > 0) return write(writeEnd())
    const result = await work(item.toString('utf8'))
    length += lengthOfTexts(result)
    write(writeResult(result))
  }
}

function write(frame: Buffer): void {
  for (let at = 0; at < frame.length; ) at += writeSync(stdout, frame, at)
}

write(writeResult({ ok: true, texts: [] }))
const read = createFrameReader()
for (;;) {
  const chunk = Buffer.allocUnsafe(65_536)
  const bytes = readSync(stdin, chunk)
  // The service has ended.
  if (bytes === 0) break
  for (const body of read(chunk.subarray(0, bytes))) await handle(body)
}
