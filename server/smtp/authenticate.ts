import type { SmtpConnection } from './connection.ts'
import type { Reply } from './reply.ts'
import { commandTimeoutMs } from './time-limits.ts'

export type Credentials = { user: string; password: string }

export type AuthRefusal = { reply: Reply | null; message: string }

/**
 * Logs in with PLAIN (RFC 4616) or, if that is not offered, with LOGIN. The connection must be encrypted. Returns null
 * on success, else the refusal. Throws SmtpConnectionError.
 *
 * @param offered The mechanisms: the parameters of AUTH in the reply to EHLO.
 */
export async function authenticate(
  connection: SmtpConnection,
  offered: string,
  credentials: Credentials,
): Promise<AuthRefusal | null> {
  const mechanisms = offered.toUpperCase().split(/\s+/)
  if (mechanisms.includes('PLAIN')) return judged(await plain(connection, credentials))
  if (mechanisms.includes('LOGIN')) return judged(await login(connection, credentials))
  return { reply: null, message: 'The mail server offers neither AUTH PLAIN nor AUTH LOGIN.' }
}

function plain(connection: SmtpConnection, { user, password }: Credentials): Promise<Reply> {
  return ask(connection, `AUTH PLAIN ${base64(`\0${user}\0${password}`)}`)
}

async function login(connection: SmtpConnection, { user, password }: Credentials): Promise<Reply> {
  for (const step of ['AUTH LOGIN', base64(user)]) {
    const reply = await ask(connection, step)
    if (reply.code !== 334) return reply
  }
  return ask(connection, base64(password))
}

function ask(connection: SmtpConnection, text: string): Promise<Reply> {
  connection.send(`${text}\r\n`)
  return connection.reply(commandTimeoutMs)
}

function judged(reply: Reply): AuthRefusal | null {
  if (reply.code === 235) return null
  return { reply, message: 'The mail server refused the user or the password.' }
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64')
}
