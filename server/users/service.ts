import type { Logger } from 'pino'
import type { SignInMethods } from '../../contract/sign-in-methods.ts'
import type { Clock } from '../lib/clock.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { type AccountEmailService, createAccountEmailService, createInvitationEmails } from './account-emails.ts'
import { createLinkService, type LinkService } from './links.ts'
import { createMemberService, type MemberService } from './members.ts'
import { createUserOperatorService, type UserOperatorService } from './operator.ts'
import { createOwnUserService, type OwnUserService } from './own-user.ts'
import { createChallenges } from './passkeys/challenges.ts'
import type { RelyingParty } from './passkeys/relying-party.ts'
import { createPasskeyService, type PasskeyService } from './passkeys/service.ts'
import { createPasswords } from './passwords.ts'
import { createProof } from './proof.ts'
import { createProviderClient, type ProviderSettings } from './provider/client.ts'
import { createPendingRequests } from './provider/pending.ts'
import { createProviderService, type ProviderService } from './provider/service.ts'
import { createSessionService, type SessionService } from './sessions.ts'
import { createSignInService, type SignInService } from './sign-in.ts'
import { createSignInDelays } from './sign-in-delays.ts'

/** People who sign in to the dashboard: who they are, and what they are in which account. */
export type UserServices = {
  accountEmails: AccountEmailService
  sessions: SessionService
  signIn: SignInService
  links: LinkService
  ownUser: OwnUserService
  passkeys: PasskeyService
  provider: ProviderService
  /** Returns the ways to sign in, besides address and password. */
  methods: () => SignInMethods
  members: MemberService
  operator: UserOperatorService
}

export type UserServicesOptions = {
  clock: Clock
  /** Seals the secrets of second factors. */
  secretBox: SecretBox
  /** Returns the URL of the service that links begin with, without a slash at the end. */
  serviceUrl: () => string
  /** Called after a commit that queued an email to a person. Null: the service sends no such emails. */
  wakeAccountEmails: (() => void) | null
  /** Returns the service that passkeys belong to. */
  relyingParty: () => RelyingParty
  /** Signs the challenges of passkeys. 32 bytes, for this purpose alone. */
  challengeKey: Buffer
  /** The identity provider. Null: none. */
  provider: ProviderSettings | null
  /** Seals what browsers carry while their users are at the identity provider. With a key for this purpose alone. */
  pendingBox: SecretBox
  logger: Logger
}

export function createUserServices({
  clock,
  secretBox,
  serviceUrl,
  wakeAccountEmails: wake,
  relyingParty,
  challengeKey,
  provider,
  pendingBox,
  logger,
}: UserServicesOptions): UserServices {
  const proving = { clock, secretBox, passwords: createPasswords() }
  const signIn = createSignInService({ ...proving, delays: createSignInDelays({ clock }) })
  const prove = createProof({ clock, secretBox, signIn })
  const leadsBackTo = () => `${serviceUrl()}/app/provider`
  return {
    accountEmails: createAccountEmailService({ clock, serviceUrl, wake }),
    sessions: createSessionService({ clock }),
    signIn,
    links: createLinkService({ ...proving, signIn }),
    ownUser: createOwnUserService({ ...proving, signIn }),
    passkeys: createPasskeyService({
      clock,
      relyingParty,
      challenges: createChallenges({ key: challengeKey, clock }),
      prove,
    }),
    provider: createProviderService({
      clock,
      logger,
      prove,
      provider: provider && { settings: provider, client: createProviderClient(provider, leadsBackTo) },
      pendingRequests: createPendingRequests({ secretBox: pendingBox, clock }),
    }),
    methods: () => {
      const { origin, isUsable } = relyingParty()
      return {
        passkeyOrigin: isUsable ? origin : null,
        provider: provider && { name: provider.name, origin: new URL(serviceUrl()).origin },
      }
    },
    members: createMemberService({ clock, serviceUrl, emails: createInvitationEmails({ wake }) }),
    operator: createUserOperatorService({ clock, serviceUrl }),
  }
}
