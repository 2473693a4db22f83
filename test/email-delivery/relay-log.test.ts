import { expect, test } from 'vitest'
import { tellOfRelay } from '../../server/email-delivery/relay-log.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { relayTo, sendOnce } from '../smtp/smtp-setup.ts'
import { startScriptedSmtp } from '../support/scripted-smtp.ts'

/** Sends to a relay that answers, does not, and answers again. What is logged of it. */
test('a relay that is away is logged once, with what to do, and once when it is back', async () => {
  const lines: { level: string; msg: string; reason?: string }[] = []
  const logger = createLogger({
    level: 'debug',
    destination: { write: (line: string) => void lines.push(JSON.parse(line)) },
  })
  const server = await startScriptedSmtp()
  const { port } = server
  const onUse = tellOfRelay({ host: '127.0.0.1', port }, logger)
  const relay = { host: '127.0.0.1', port, tls: 'opportunistic', credentials: null } as const
  const send = () => sendOnce(relayTo(server, { to: { kind: 'relay', relay, onUse } }))

  await send()
  await server.stop()
  await send()
  await send()
  await using again = await startScriptedSmtp({ port })
  await send()
  await send()

  expect(again.messages).toHaveLength(2)
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    ['warn', expect.stringContaining(`the mail relay 127.0.0.1:${port} cannot be used; emails wait`)],
    ['info', `the mail relay 127.0.0.1:${port} can be used again`],
  ])
  expect(lines[0]?.reason).toBe('The mail server refused the connection.')
})
