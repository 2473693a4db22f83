import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { type CertificateName, certificate } from './certificates.ts'
import { patienceMs } from './patience.ts'
import {
  type ScriptedMessage,
  ScriptedSession,
  type SmtpReaction,
  type SmtpScene,
  type SmtpSituation,
  type SmtpStage,
} from './scripted-smtp-session.ts'
import { SmtpWire } from './smtp-wire.ts'

/**
 * Returns the reaction of the server at a stage. `count`: how often any connection was there before. Undefined: the
 * default, which is to accept everything. A promise: the server reacts when the test resolves it.
 */
export type SmtpScript = (
  situation: SmtpSituation & { count: number },
) => SmtpReaction | undefined | Promise<SmtpReaction | undefined>

export type ScriptedSmtp = AsyncDisposable & {
  port: number
  /** All messages it answered 250, in their order. */
  messages: readonly ScriptedMessage[]
  /** Every command that came. */
  commands: readonly { connection: number; line: string }[]
  /** Connections there were so far. */
  readonly connections: number
  /** Connections that are open, and the most there were at once. */
  readonly open: number
  readonly mostOpen: number
  /** Sets the reaction at a stage from now on. */
  at(stage: SmtpStage, script: SmtpScript | SmtpReaction): void
  /** Resolves when it has been at a stage so many times in all. Default: once. Rejects after `patienceMs`. */
  reached(stage: SmtpStage, times?: number): Promise<void>
  /** Says something that nobody asked for on all connections that are open. */
  say(text: string): void
  /** Closes all connections that are open. */
  dropAll(): void
  stop(): Promise<void>
}

export type ScriptedSmtpOptions = {
  /** The extensions in the reply to EHLO, besides STARTTLS. Default: those of large servers. */
  extensions?: readonly string[]
  /** Offers STARTTLS with this certificate; `broken`: says yes and speaks no TLS. Default: not offered. */
  tls?: CertificateName | 'broken'
  /** Speaks TLS from the first byte, with this certificate. Default: not. */
  implicitTls?: CertificateName
  /** Default: 127.0.0.1, any free port. */
  host?: string
  port?: number
}

const usualExtensions = ['PIPELINING', '8BITMIME', 'SMTPUTF8', 'SIZE 52428800', 'DSN', 'ENHANCEDSTATUSCODES']

/** A real SMTP server on loopback that does at each stage what a test says. */
export async function startScriptedSmtp(options: ScriptedSmtpOptions = {}): Promise<ScriptedSmtp> {
  const { extensions = usualExtensions, tls, implicitTls, host = '127.0.0.1', port = 0 } = options
  const scripts = new Map<SmtpStage, SmtpScript | SmtpReaction>()
  const counts = new Map<SmtpStage, number>()
  const waiting = new Set<() => void>()
  const messages: ScriptedMessage[] = []
  const commands: { connection: number; line: string }[] = []
  const wires = new Set<SmtpWire>()
  let connections = 0
  let mostOpen = 0

  const scene: SmtpScene = {
    extensions,
    tls,
    async reactionTo(stage, situation) {
      const count = counts.get(stage) ?? 0
      counts.set(stage, count + 1)
      for (const look of waiting) look()
      const script = scripts.get(stage)
      return typeof script === 'function' ? script({ ...situation, count }) : script
    },
    noteCommand: (connection, line) => void commands.push({ connection, line }),
    noteMessage: (message) => void messages.push(message),
  }

  function take(socket: Socket): void {
    const wire = new SmtpWire(socket)
    wires.add(wire)
    mostOpen = Math.max(mostOpen, wires.size)
    socket.on('close', () => wires.delete(wire))
    void new ScriptedSession(wire, connections, scene).run()
    connections += 1
  }

  const server =
    implicitTls === undefined
      ? createServer({ noDelay: true }, take)
      : createTlsServer({ ...certificate(implicitTls), noDelay: true }, take)
  server.listen(port, host)
  await once(server, 'listening')

  async function stop(): Promise<void> {
    if (!server.listening) return
    server.close()
    for (const wire of wires) wire.reset()
    await once(server, 'close')
  }

  return {
    port: (server.address() as AddressInfo).port,
    messages,
    commands,
    get connections() {
      return connections
    },
    get open() {
      return wires.size
    },
    get mostOpen() {
      return mostOpen
    },
    at: (stage, script) => void scripts.set(stage, script),
    reached: (stage, times = 1) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`the server was ${counts.get(stage) ?? 0} of ${times} times at ${stage}`))
        }, patienceMs)
        const look = () => {
          if ((counts.get(stage) ?? 0) < times) return
          clearTimeout(timer)
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    say(text) {
      for (const wire of wires) wire.write(`${text}\r\n`)
    },
    dropAll() {
      for (const wire of wires) wire.drop()
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
