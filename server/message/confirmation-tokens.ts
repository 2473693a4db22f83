import type { Mode } from '../../contract/mode.ts'
import { createSealer, idLength, packId, unpackId } from './mail-tokens.ts'

/** The content of a confirmation token: one person in one audience, at the address that the email went to. */
export type ConfirmationRef = {
  accountId: string
  audienceId: string
  subscriberId: string
  address: string
  /** Of the email. */
  mode: Mode
  /** When the email was made, in whole seconds. */
  askedAt: Date
}

/**
 * Makes and reads the tokens in links to confirm. They are encrypted and signed as those of other links in emails, with a
 * key of their own: no other token is one of these. `read` returns null for a token that was not made here. A token says
 * when it was made; how long it holds is up to the caller.
 */
export type ConfirmationTokens = {
  make(ref: ConfirmationRef): string
  read(token: string): ConfirmationRef | null
}

const modes: readonly Mode[] = ['test', 'live']
const modeAt = 3 * idLength
const timeAt = modeAt + 1
const addressAt = timeAt + 6

/** @param key The encryption key. */
export function createConfirmationTokens(key: Buffer): ConfirmationTokens {
  const sealer = createSealer(key, 'confirm')
  return {
    make({ accountId, audienceId, subscriberId, address, mode, askedAt }) {
      const rest = Buffer.alloc(addressAt - modeAt)
      rest.writeUInt8(modes.indexOf(mode))
      rest.writeUIntBE(Math.floor(askedAt.getTime() / 1_000), timeAt - modeAt, 6)
      return sealer.seal(
        Buffer.concat([packId(accountId), packId(audienceId), packId(subscriberId), rest, Buffer.from(address)]),
      )
    },
    read(token) {
      const payload = sealer.open(token)
      const mode = payload === null ? undefined : modes[payload.at(modeAt) ?? modes.length]
      if (payload === null || mode === undefined) return null
      return {
        accountId: unpackId('account', payload),
        audienceId: unpackId('audience', payload.subarray(idLength)),
        subscriberId: unpackId('subscriber', payload.subarray(2 * idLength)),
        address: payload.toString('utf8', addressAt),
        mode,
        askedAt: new Date(payload.readUIntBE(timeAt, 6) * 1_000),
      }
    },
  }
}
