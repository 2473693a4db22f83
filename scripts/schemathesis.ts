import { join, resolve } from 'node:path'
import { z } from 'zod'
import { type LiveService, startLiveService } from './support/live-service.ts'
import { skipWithout } from './support/optional-tool.ts'
import { findPython, programOf, virtualEnvironment } from './support/python.ts'
import { run } from './support/run.ts'

/*
 * Tests a running service against its published spec with Schemathesis: all checks and phases, including links.
 * Arguments are passed on: `npm run test:schemathesis -- --max-examples 200`.
 */

const files = resolve('test/schemathesis')
const withId = z.object({ id: z.string() })
const invitation = z.object({ link: z.string() })
const signedIn = z.object({ session: withId, accounts: z.tuple([withId]) })

async function judge(python: string): Promise<void> {
  const cwd = await virtualEnvironment(python, { name: 'schemathesis', requirements: join(files, 'requirements.txt') })
  await using service = await startLiveService()
  const { cookie, sessionId, accountId } = await signUpOperator(service)
  const keys = z.array(withId).parse(await service.command('keys', 'list'))
  const env = {
    ...process.env,
    API_KEY: service.apiKey,
    TEST_KEY: service.testKey,
    SESSION: cookie,
    OWN_IDS: [sessionId, ...keys.map(({ id }) => id)].join(','),
    ACCOUNT: accountId,
    ORIGIN: service.url,
    HOOKS: join(files, 'hooks.py'),
  }
  const config = ['--config-file', join(files, 'schemathesis.toml')]
  // All checks run by default. `--checks all` would also enable checks that the file disables for one path.
  const options = process.argv.slice(2)
  // Its data between runs stays in the cache, beside its programs.
  await run(programOf(cwd, 'schemathesis'), [...config, 'run', ...options, `${service.url}/openapi.json`], { env, cwd })
}

/** Makes a user who owns the account and is an operator. Returns the value of the cookie of their session, and ids. */
async function signUpOperator({ url, command }: LiveService) {
  const email = 'owner@example.com'
  const { link } = invitation.parse(await command('users', 'invite', email))
  const answer = await fetch(`${url}/v1/links/accept`, {
    method: 'POST',
    headers: { 'x-postern-dashboard': '1', origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ token: link.split('token=')[1], name: 'Ada', password: 'correct horse battery staple' }),
  })
  const cookie = /postern_session=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '')?.[1]
  if (cookie === undefined) throw new Error(`accepting the invitation was answered with ${answer.status}`)
  await command('users', 'operator', email, '--yes')
  const { session, accounts } = signedIn.parse(await answer.json())
  return { cookie, sessionId: session.id, accountId: accounts[0].id }
}

const python = await findPython()
if (python === null) skipWithout('Python 3.10 or later with venv and pip', { judge: 'Schemathesis' })
else {
  await judge(python).catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}
