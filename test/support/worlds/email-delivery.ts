import { onTestFinished } from 'vitest'
import {
  type MailEngine,
  type MailEngineOptions,
  type MailServerRules,
  startMailEngine,
  startMailServer,
} from '../mail-engine.ts'
import { type ScriptedSmtp, type ScriptedSmtpOptions, startScriptedSmtp } from '../scripted-smtp.ts'

type Limits = Omit<MailEngineOptions, 'port' | 'to'>

/** A mail server that keeps what it takes, and an engine that sends to it. Both end with the test. */
export async function startWithServer(rules: MailServerRules = {}, limits: Limits = {}) {
  const server = await startMailServer(rules)
  const engine = await engineFor(server.port, () => server[Symbol.asyncDispose](), limits)
  return { server, engine }
}

/** The same with a mail server that says what it is told to. */
export async function startWithScript(
  options: ScriptedSmtpOptions = {},
): Promise<{ server: ScriptedSmtp; engine: MailEngine }> {
  const server = await startScriptedSmtp(options)
  const engine = await engineFor(server.port, () => server.stop())
  return { server, engine }
}

async function engineFor(port: number, stopServer: () => Promise<void>, limits: Limits = {}): Promise<MailEngine> {
  const engine = await startMailEngine({ port, ...limits })
  onTestFinished(async () => {
    await engine[Symbol.asyncDispose]()
    await stopServer()
  })
  return engine
}
