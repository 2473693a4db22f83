import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createWebhookVersions } from '../../../server/webhook-delivery/scheduling/webhook-versions.ts'

const deleted = Number.POSITIVE_INFINITY

/** `tell`: one that was committed, in any order and more than once. `pick` says which, or which read begins. */
const step = fc.record({
  kind: fc.constantFrom('change', 'delete', 'tell', 'tell', 'read', 'read', 'begin', 'begin', 'hear', 'hear no more'),
  webhook: fc.nat(4),
  pick: fc.nat(),
  isFresh: fc.boolean(),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
const steps = fc.array(step, { minLength: 1, maxLength: 200 })

type Read = { webhook: number; version: number; readAt: number }

/** A database, and the process of a worker that is told of what is committed there. */
function createModel(maxWebhooks: number) {
  const versions = createWebhookVersions(maxWebhooks)
  /** Of each webhook, in the database. */
  const committed = [1, 1, 1, 1, 1]
  const commits: { webhook: number; version: number }[] = []
  /** The greatest this process was told of. */
  const told = [0, 0, 0, 0, 0]
  let hearsSince: number | null = null
  const reads: Read[] = []
  let now = 0

  function tell(commit: { webhook: number; version: number } | undefined): void {
    if (commit === undefined) return
    versions.tell(`wh_${commit.webhook}`, commit.version, now)
    told[commit.webhook] = Math.max(told[commit.webhook] ?? 0, commit.version)
  }

  function commit(webhook: number, version: number): void {
    committed[webhook] = version
    commits.push({ webhook, version })
  }

  function begin(read: Read | undefined, isFresh: boolean): void {
    if (read === undefined || !versions.mayBegin(`wh_${read.webhook}`, read, isFresh)) return
    expect(read.version).toBeGreaterThanOrEqual(told[read.webhook] ?? 0)
    expect(isFresh || (hearsSince !== null && read.readAt > hearsSince)).toBe(true)
  }

  function hear(isHearing: boolean): void {
    hearsSince = isHearing ? (hearsSince ?? now) : null
    versions.hear(isHearing, now)
  }

  return {
    versions,
    step({ kind, webhook, pick, isFresh }: Step): void {
      now += 1
      if (kind === 'change') commit(webhook, (committed[webhook] ?? 0) + 1)
      else if (kind === 'delete') commit(webhook, deleted)
      else if (kind === 'tell') tell(commits[pick % commits.length])
      else if (kind === 'read') reads.push({ webhook, version: committed[webhook] ?? 0, readAt: now })
      else if (kind === 'begin') begin(reads[pick % reads.length], isFresh)
      else hear(kind === 'hear')
    },
    /** Returns whether an attempt may begin with a version read now, by a process that receives notifications. */
    mayBeginAnew(webhook: number): boolean {
      now += 1
      versions.hear(true, now)
      now += 1
      return versions.mayBegin(`wh_${webhook}`, { version: committed[webhook] ?? 0, readAt: now }, false)
    },
  }
}

test('the versions of webhooks let no attempt begin with a version older than one told, whatever is remembered', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 6 }), (all, maxWebhooks) => {
      const model = createModel(maxWebhooks)
      for (const one of all) model.step(one)
      expect(model.versions.size).toBeLessThanOrEqual(maxWebhooks)
    }),
    { numRuns: 1_000 },
  )
})

test('the versions of webhooks let an attempt begin with what was just read, so that nothing waits for good', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 6 }), fc.nat(4), (all, maxWebhooks, webhook) => {
      const model = createModel(maxWebhooks)
      for (const one of all) model.step(one)
      expect(model.mayBeginAnew(webhook)).toBe(true)
    }),
  )
})

test('the versions of webhooks ask for nothing to be read anew while nothing changes', () => {
  const versions = createWebhookVersions()
  versions.hear(true, 1)
  const read = { version: 1, readAt: 2 }
  for (let other = 0; other < 1_000; other++) versions.tell(`wh_${other}`, 2, 3 + other)
  for (let again = 0; again < 10; again++) versions.hear(true, 2_000 + again)
  expect(versions.mayBegin('wh_quiet', read, false)).toBe(true)
})

test('the versions of webhooks take what was read after a change was told, also where its version is less: the database was restored', () => {
  const versions = createWebhookVersions()
  versions.hear(true, 1)
  versions.tell('wh_1', 7, 2)
  expect(versions.mayBegin('wh_1', { version: 3, readAt: 3 }, false)).toBe(true)
})

test('the versions of webhooks remember 10,000 webhooks, and have what was read before they forgot be read anew', () => {
  const versions = createWebhookVersions()
  versions.hear(true, 1)
  for (let webhook = 0; webhook < 20_000; webhook++) versions.tell(`wh_${webhook}`, 2, 10 + webhook)
  expect(versions.size).toBe(10_000)
  expect(versions.mayBegin('wh_quiet', { version: 1, readAt: 10_009 }, false)).toBe(false)
  expect(versions.mayBegin('wh_quiet', { version: 1, readAt: 10_010 }, false)).toBe(true)
})
