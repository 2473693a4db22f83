import { createTransport } from 'nodemailer'
import { expect } from 'vitest'
import { contract } from '../../contract/index.ts'
import type { TestService } from './service.ts'

/** The setting of a test service that takes mail at the return paths, at any free port. */
export const takesInbound = { inbound: { host: '127.0.0.1', port: 0, tls: null } }

/** Waits until an email to one recipient is captured. Returns its return path and the captured message. */
export async function untilCaptured(
  { client }: Pick<TestService, 'client'>,
  emailId: string,
): Promise<{ returnPath: string; capturedId: string }> {
  const list = () => client.succeed(contract.capturedMessages.list, { query: { emailId } })
  await expect.poll(async () => (await list()).data.length).toBe(1)
  const [message] = (await list()).data
  return { returnPath: message?.mailFrom ?? '', capturedId: message?.id ?? '' }
}

/** Hands a message over as a mail server on the internet does. */
export async function comeBack({ app }: Pick<TestService, 'app'>, to: string, raw: string): Promise<void> {
  const client = createTransport({ host: '127.0.0.1', port: Number(app.inboundPort), ignoreTLS: true })
  await client.sendMail({ envelope: { from: '', to }, raw })
}
