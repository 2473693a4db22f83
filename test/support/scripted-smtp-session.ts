import { type CertificateName, certificate } from './certificates.ts'
import type { SmtpWire } from './smtp-wire.ts'

/** Where a conversation is: what the server has just got. `content`: the first bytes of a message. */
export type SmtpStage =
  | 'connect'
  | 'ehlo'
  | 'helo'
  | 'starttls'
  | 'auth'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'content'
  | 'message'
  | 'rset'
  | 'quit'

/**
 * The reaction of the server. It sends the reply (lines separated by `\n`, sent as they are). Then it may close the
 * connection, reset it, or stay silent.
 */
export type SmtpReaction = string | { reply?: string; next: 'drop' | 'reset' | 'silence' }

export type SmtpSituation = {
  /** Of the connection, from 0. */
  connection: number
  /** The address of MAIL and RCPT; what was sent with AUTH, decoded; else the parameters of the command. */
  argument: string
  isSecure: boolean
  /** Who has logged in on this connection; null: nobody. */
  user: string | null
}

export type ScriptedMessage = {
  mailFrom: string
  /** Behind the address in MAIL. */
  mailParameters: string
  recipients: { address: string; parameters: string }[]
  /** Without the dots of transparency. */
  data: Buffer
  connection: number
  isSecure: boolean
  user: string | null
}

/** The settings and callbacks that all sessions of a server share. */
export type SmtpScene = {
  extensions: readonly string[]
  tls: CertificateName | 'broken' | undefined
  /** Returns the reaction. Undefined: the default. */
  reactionTo(stage: SmtpStage, situation: SmtpSituation): Promise<SmtpReaction | undefined>
  noteCommand(connection: number, line: string): void
  noteMessage(message: ScriptedMessage): void
}

/** A reply that was sent, and whether the conversation goes on after it. */
type Reacted = { reply: string; goesOn: boolean }

const noRecipients = '554 5.5.1 No recipients'

/** One conversation as the server holds it. */
export class ScriptedSession {
  readonly #wire: SmtpWire
  readonly #connection: number
  readonly #scene: SmtpScene
  #user: string | null = null
  #envelope: Omit<ScriptedMessage, 'data'> | null = null

  constructor(wire: SmtpWire, connection: number, scene: SmtpScene) {
    this.#wire = wire
    this.#connection = connection
    this.#scene = scene
  }

  /** Until somebody ends it. */
  async run(): Promise<void> {
    if (!(await this.#react('connect', '', '220 mx.test ESMTP')).goesOn) return
    for (let line = await this.#wire.line(); line !== null; line = await this.#wire.line()) {
      this.#scene.noteCommand(this.#connection, line)
      const [, verb = '', rest = ''] = /^(\S*) ?(.*)$/.exec(line) ?? []
      if (!(await this.#obey(verb.toUpperCase(), rest)).goesOn) return
    }
  }

  #obey(verb: string, rest: string): Promise<Reacted> {
    switch (verb) {
      case 'EHLO':
        return this.#react('ehlo', rest, this.#hello())
      case 'HELO':
        return this.#react('helo', rest, '250 mx.test')
      case 'STARTTLS':
        return this.#startTls()
      case 'AUTH':
        return this.#login(rest)
      case 'MAIL':
        return this.#mail(rest)
      case 'RCPT':
        return this.#rcpt(rest)
      case 'DATA':
        return this.#data()
      case 'RSET':
        this.#envelope = null
        return this.#react('rset', '', '250 2.0.0 Ok')
      case 'QUIT':
        return this.#quit()
      default:
        return this.#do('502 5.5.2 What?')
    }
  }

  #hello(): string {
    const { extensions, tls } = this.#scene
    const offered = tls === undefined || this.#wire.isSecure ? extensions : [...extensions, 'STARTTLS']
    return ['mx.test', ...offered].map((line, at) => `250${at === offered.length ? ' ' : '-'}${line}`).join('\n')
  }

  async #startTls(): Promise<Reacted> {
    const reacted = await this.#react('starttls', '', '220 2.0.0 Go on')
    if (!reacted.goesOn || !reacted.reply.startsWith('220')) return reacted
    const { tls = 'valid' } = this.#scene
    if (tls !== 'broken') await this.#wire.startTls(certificate(tls))
    else if (await this.#wire.readable()) this.#wire.write('This is not TLS.\r\n')
    return reacted
  }

  async #login(argument: string): Promise<Reacted> {
    const [mechanism, initial = ''] = argument.split(' ')
    const given = mechanism === 'LOGIN' ? `\0${(await this.#askLogin()).join('\0')}` : decoded(initial)
    const reacted = await this.#react('auth', given, '235 2.7.0 Welcome')
    if (reacted.reply.startsWith('235')) this.#user = given.split('\0')[1] ?? null
    return reacted
  }

  async #askLogin(): Promise<string[]> {
    const given: string[] = []
    for (const question of ['Username:', 'Password:']) {
      this.#wire.write(`334 ${Buffer.from(question).toString('base64')}\r\n`)
      given.push(decoded((await this.#wire.line()) ?? ''))
    }
    return given
  }

  async #mail(rest: string): Promise<Reacted> {
    const { address, parameters } = pathOf(rest)
    const reacted = await this.#react('mail', address, '250 2.1.0 Ok')
    if (reacted.reply.startsWith('250')) {
      this.#envelope = {
        mailFrom: address,
        mailParameters: parameters,
        recipients: [],
        connection: this.#connection,
        isSecure: this.#wire.isSecure,
        user: this.#user,
      }
    }
    return reacted
  }

  async #rcpt(rest: string): Promise<Reacted> {
    const { address, parameters } = pathOf(rest)
    if (this.#envelope === null) return this.#do('503 5.5.1 MAIL first')
    const reacted = await this.#react('rcpt', address, '250 2.1.5 Ok')
    if (reacted.reply.startsWith('250')) this.#envelope.recipients.push({ address, parameters })
    return reacted
  }

  async #data(): Promise<Reacted> {
    const hasRecipients = (this.#envelope?.recipients.length ?? 0) > 0
    const reacted = await this.#react('data', '', hasRecipients ? '354 Go on' : noRecipients)
    if (!reacted.goesOn || !reacted.reply.startsWith('354')) return reacted
    if (!(await this.#wire.readable())) return over
    const begun = await this.#react('content', '', '')
    if (!begun.goesOn) return begun
    const data = await this.#wire.message()
    if (data === null) return over
    const envelope = this.#envelope
    this.#envelope = null
    const answered = await this.#react('message', '', hasRecipients ? '250 2.0.0 Taken' : noRecipients)
    if (envelope !== null && answered.reply.startsWith('250')) this.#scene.noteMessage({ ...envelope, data })
    return answered
  }

  async #quit(): Promise<Reacted> {
    await this.#react('quit', '', '221 2.0.0 Bye')
    this.#wire.drop()
    return over
  }

  async #react(stage: SmtpStage, argument: string, usual: string): Promise<Reacted> {
    const situation = { connection: this.#connection, argument, isSecure: this.#wire.isSecure, user: this.#user }
    return this.#do((await this.#scene.reactionTo(stage, situation)) ?? usual)
  }

  async #do(reaction: SmtpReaction): Promise<Reacted> {
    const { reply = '', next = null } = typeof reaction === 'string' ? { reply: reaction } : reaction
    if (reply !== '') this.#wire.write(`${reply.replaceAll('\n', '\r\n')}\r\n`)
    if (next === 'drop') this.#wire.drop()
    if (next === 'reset') this.#wire.reset()
    return { reply, goesOn: next === null }
  }
}

const over: Reacted = { reply: '', goesOn: false }

/** Of `FROM:<a@b.test> SIZE=3`. */
function pathOf(rest: string): { address: string; parameters: string } {
  const [, address = '', parameters = ''] = /^[A-Z]+:<((?:"(?:[^"\\]|\\.)*"|[^>])*)> ?(.*)$/i.exec(rest) ?? []
  return { address, parameters }
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}
