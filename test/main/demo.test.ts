import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { scratchDirectory } from '../support/scratch.ts'
import { runNode, type ServiceProcess, startService } from './service-process.ts'

const longTest = { timeout: 240_000 }

describe('npm run demo', () => {
  let dataDir: string
  let service: ServiceProcess

  beforeAll(async () => {
    dataDir = await mkdtemp(join(scratchDirectory(), 'postern-demo-'))
    service = await startService({ DATA_DIR: dataDir })
  })

  afterAll(async () => {
    service.child.kill('SIGTERM')
    await service.exit
    await rm(dataDir, { recursive: true, force: true })
  })

  test('npm run demo shows a signed delivery and a scheduled retry, and takes away what it made', async () => {
    const demo = await runNode(['scripts/demo.ts'], { DATA_DIR: dataDir, POSTERN_URL: service.url })
    expect(demo).toMatchObject({ stderr: '', exitCode: 0 })
    expect(demo.stdout).toMatch(/"type": "contact.created"/)
    expect(demo.stdout).toMatch(/✓ X-Service-Signature is the HMAC-SHA-256/)
    expect(demo.stdout).toMatch(/✗ evt_\w+ \(contact.updated\) arrived and was answered 500/)
    expect(demo.stdout).toContain(`The dashboard shows what stays: ${service.url}/app\n`)
    expect(demo.stdout).toMatch(/nextAttemptAt +\S+Z \(in 60 s\)/)

    const [key] = /postern_live_\w+/.exec(service.greeting) ?? []
    for (const things of ['webhooks', 'audiences', 'subscribers']) {
      const response = await fetch(`${service.url}/v1/${things}`, { headers: { authorization: `Bearer ${key}` } })
      expect(await response.json()).toEqual({ data: [], nextCursor: null })
    }
    const { stdout } = await runNode(['server/cli/postern.ts', 'keys', 'list', '--json'], { DATA_DIR: dataDir })
    const keys: { name: string; revokedAt: string | null }[] = JSON.parse(stdout)
    expect(keys.find(({ name }) => name === 'npm run demo')?.revokedAt).toEqual(expect.any(String))
  })

  test('npm run demo -- email shows one captured and signed, its timeline and signed events, and takes away what it made', async () => {
    const demo = await runNode(['scripts/demo.ts', 'email', '--open'], { DATA_DIR: dataDir, POSTERN_URL: service.url })
    expect(demo).toMatchObject({ stderr: '', exitCode: 0 })
    for (const algorithm of ['rsa-sha256', 'ed25519-sha256']) {
      expect(demo.stdout).toMatch(new RegExp(`DKIM-Signature +a=${algorithm}; d=demo-\\w{8}\\.test; s=\\S+; …`))
    }
    expect(demo.stdout).toMatch(/return path +b\.\w{42}@send\.demo-\w{8}\.test/)
    expect(demo.stdout).toMatch(/Z {2}delivered {2}ada@example\.org {2}250 /)
    expect(demo.stdout).toMatch(/Z {2}bounced {4}bounced@simulator\.test {2}550 5\.1\.1 No such user/)
    expect(demo.stdout.match(/✓ email\.\w+ of \S+ arrived as evt_\w{26}, and its signature is right/g)).toHaveLength(5)
    expect(demo.stdout).toMatch(/"type": "email.delivered"/)
    // Without a terminal nothing is opened.
    expect(demo.stdout).toContain(`The dashboard shows what stays: ${service.url}/captured\n`)

    const [key] = /postern_live_\w+/.exec(service.greeting) ?? []
    for (const things of ['webhooks', 'domains']) {
      const response = await fetch(`${service.url}/v1/${things}`, { headers: { authorization: `Bearer ${key}` } })
      expect(await response.json()).toEqual({ data: [], nextCursor: null })
    }
  })

  // It waits for claims of the killed process to lapse: half a minute in which nothing is done.
  test(
    'npm run demo -- campaign kills a service of its own in the middle, and proves that each got it once',
    longTest,
    async () => {
      const demo = await runNode(['scripts/demo.ts', 'campaign', '100'], {})
      expect(demo).toMatchObject({ stderr: '', exitCode: 0 })
      expect(demo.stdout).toMatch(/rows +100 read, 100 created, 0 skipped, 0 failed/)
      expect(demo.stdout).toMatch(/people +80\n/)
      expect(demo.stdout).toMatch(/✗ kill -9: the process is gone/)
      expect(demo.stdout).toMatch(/got it +80\n +counted as handed over +80\n +sent again +\d+\n/)
      expect(demo.stdout).toMatch(/✓ One email for each person, campaign.sent once, campaign.completed once/)
    },
  )

  test.each([
    ['a name it does not know', ['emial'], {}, 'there is no "emial"; there are webhooks, email, campaign'],
    ['an option it does not know', ['--opne'], {}, 'there is no option "--opne"; there is --open'],
    ['too many people', ['campaign', '1001'], {}, 'the number of people must be from 50 to 1000, not "1001"'],
    ['a test key for email', ['email'], { POSTERN_API_KEY: 'postern_test_x' }, 'POSTERN_API_KEY must be a live key'],
  ])('npm run demo refuses %s', async (_, args, env, reason) => {
    const demo = await runNode(['scripts/demo.ts', ...args], { POSTERN_URL: service.url, ...env })
    expect(demo).toEqual({ stdout: '', stderr: `demo: ${reason}\n`, exitCode: 1 })
  })

  test('npm run demo says so when it makes its key in the database of another service', async () => {
    await using other = await createTestDatabase()
    await seedAccount(other.db, new Date())
    const env = { POSTERN_URL: service.url, DATABASE_URL: other.connectionString }
    const demo = await runNode(['scripts/demo.ts'], env)
    expect(demo).toMatchObject({ stdout: '', exitCode: 1 })
    expect(demo.stderr).toMatch(
      /^demo: the service at \S+ does not know a key that was just made in the database of DATABASE_URL: .* set DATABASE_URL to .* PORT or .*\n$/,
    )
    expect(await other.db.selectFrom('api_keys').select('revoked_at').execute()).toEqual([
      { revoked_at: expect.any(Date) },
    ])
  })

  test('npm run demo says so when no service runs', async () => {
    const demo = await runNode(['scripts/demo.ts'], { POSTERN_URL: 'http://127.0.0.1:1' })
    expect(demo).toEqual({
      stdout: '',
      stderr:
        'demo: no service answers at http://127.0.0.1:1; start it with "npm start" in another terminal, or set POSTERN_URL to where it runs\n',
      exitCode: 1,
    })
  })
})
