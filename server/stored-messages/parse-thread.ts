import { parentPort, workerData } from 'node:worker_threads'
import { readContent } from './parse.ts'

/* A worker thread that parses the message in `workerData` and posts its content: see `readInThread`. */

parentPort?.postMessage(await readContent(Buffer.from(workerData.buffer)))
