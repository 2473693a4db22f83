import { parentPort, workerData } from 'node:worker_threads'
import { readContent } from './parse.ts'

/* Reads the message it is started with, and sends what is in it: see `readAside`. */

parentPort?.postMessage(await readContent(Buffer.from(workerData.buffer)))
