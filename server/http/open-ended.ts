import type { ServerResponse } from 'node:http'

const openEnded = new WeakSet<ServerResponse>()

/** Marks a response that has no end of its own: a client that closes it has had what it wanted. */
export function setOpenEnded(res: ServerResponse, isOpenEnded: boolean): void {
  if (isOpenEnded) openEnded.add(res)
  else openEnded.delete(res)
}

/** Returns true when a closed response was not cut off: it was sent in full, or had no end. */
export function isComplete(res: ServerResponse): boolean {
  return res.writableFinished || openEnded.has(res)
}
