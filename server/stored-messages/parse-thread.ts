import { parentPort, workerData } from 'node:worker_threads'
import { readAttachment, readContent } from './parse.ts'

/* A worker thread that parses the message in `workerData` and posts what is asked for: see `read-in-thread.ts`. */

const { message, attachment } = workerData as { message: Uint8Array; attachment: number | null }
const content = Buffer.from(message.buffer)
parentPort?.postMessage(await (attachment === null ? readContent(content) : readAttachment(content, attachment)))
