import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Request, Response } from 'express'
import { expect, test } from 'vitest'
import { rawBodyOf, readJsonBody } from '../../server/http/body.ts'
import { liveBytes } from '../support/live-bytes.ts'

const megabyte = 1_048_576

test('a body that comes byte by byte takes memory by its bytes, not by their number', async () => {
  const req = new IncomingMessage(new Socket())
  req.method = 'POST'
  req.headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked', 'idempotency-key': 'a' }
  const read = readJsonBody(megabyte)(req as Request, new ServerResponse(req) as Response, () => undefined)
  await nextTurn()
  const before = liveBytes()
  const body = `"${'x'.repeat(300_000)}"`
  for (const [index, byte] of [...body].entries()) {
    req.push(Buffer.from(byte))
    if (index % 1_000 === 0) await nextTurn()
  }
  await nextTurn()
  expect(liveBytes() - before).toBeLessThan(10 * megabyte)
  req.push(null)
  await read
  expect(rawBodyOf(req).toString()).toBe(body)
})
