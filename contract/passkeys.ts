import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { boundedString, list, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'
import { session } from './sessions.ts'
import { objectName, password, secondFactor } from './user.ts'

const c = initContract()

/** Passkeys that a user can have. */
export const maxPasskeys = 10
/** How long a passkey may take to answer a challenge. Minutes. */
export const passkeyMinutes = 5

const base64urlFault = 'must be base64url without padding'

/** Bytes in base64url. */
function bytes(maxCharacters: number) {
  return boundedString(maxCharacters).regex(/^[\w-]+$/, base64urlFault)
}

const clientData = bytes(4_096).meta({
  description: '`response.clientDataJSON` of the credential, in base64url.',
  example: 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0',
})

const challenge = z.string().meta({
  description: `What the passkey has to sign. It is good for ${passkeyMinutes} minutes, and once.`,
  example: 'q83vEjRWeJASNFZ4kBI0VniQEjRWeJASNFZ4kBI0Vng',
})

const passkeyName = objectName.meta({ description: 'What the user calls the passkey.', example: 'Work laptop' })

const passkey = z
  .object({
    id: idSchema('passkey', 'Identifies the passkey.'),
    name: z.string(),
    isSynced: z
      .boolean()
      .meta({ description: 'True when its provider keeps a copy, for the other devices of the user.' }),
    lastUsedAt: timestamp.nullable().meta({ description: 'When it last signed the user in; null: never.' }),
    refusedAt: timestamp.nullable().meta({
      description:
        'When it was last refused because its counter went back, which a copy of it causes. Null: never. Remove such a passkey.',
    }),
    createdAt: timestamp,
  })
  .meta({
    id: 'Passkey',
    description: 'A passkey that signs a user in.',
    example: {
      id: exampleId('passkey'),
      name: 'Work laptop',
      isSynced: true,
      lastUsedAt: '2026-03-01T10:00:00.000Z',
      refusedAt: null,
      createdAt: '2026-03-01T09:30:00.000Z',
    },
  })

export const proveAgain = z
  .strictObject({
    password: password
      .optional()
      .meta({ description: 'The password; needed where `hasPassword` of the user is true.' }),
    code: secondFactor.optional(),
  })
  .meta({
    id: 'ProveAgain',
    description: 'Proves again who the user is.',
    example: { password: 'correct horse battery staple' },
  })

const credentialDescriptor = z.object({
  type: z.literal('public-key'),
  id: z.string().meta({ description: 'The id of the credential, in base64url.' }),
  transports: z.array(z.string()),
})

const newPasskeyOptions = z
  .object({
    rp: z.object({ id: z.string(), name: z.string() }),
    user: z.object({ id: z.string(), name: z.string(), displayName: z.string() }),
    challenge,
    pubKeyCredParams: z.array(z.object({ type: z.literal('public-key'), alg: z.int() })),
    timeout: z.int().meta({ description: 'Milliseconds.' }),
    excludeCredentials: z.array(credentialDescriptor),
    authenticatorSelection: z.object({
      residentKey: z.literal('required'),
      requireResidentKey: z.literal(true),
      userVerification: z.literal('required'),
    }),
    attestation: z.literal('none'),
  })
  .meta({
    id: 'NewPasskeyOptions',
    description:
      'What a browser makes a passkey with: `PublicKeyCredentialCreationOptionsJSON` of Web Authentication Level 3, for `PublicKeyCredential.parseCreationOptionsFromJSON()`.',
    example: {
      rp: { id: 'postern.example.com', name: 'Postern' },
      user: { id: 'dXNyXzAxanF6NHg3bThlNXY5dDJrNnIzdzB5MWFi', name: 'ada@example.com', displayName: 'Ada Lovelace' },
      challenge: 'q83vEjRWeJASNFZ4kBI0VniQEjRWeJASNFZ4kBI0Vng',
      pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
      timeout: passkeyMinutes * 60_000,
      excludeCredentials: [],
      authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
      attestation: 'none',
    },
  })

const transport = boundedString(32).regex(/^[a-z-]+$/, 'must be the name of a transport, such as "internal"')

const addPasskey = z
  .strictObject({
    name: passkeyName,
    clientDataJSON: clientData,
    attestationObject: bytes(10_000).meta({
      description: '`response.attestationObject` of the credential, in base64url.',
      example: 'o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVik',
    }),
    transports: list(transport, { max: 8, fault: 'there are at most 8 transports' })
      .default([])
      .meta({
        description: '`response.getTransports()` of the credential: how the browser reaches it.',
        example: ['internal'],
      }),
  })
  .meta({
    id: 'AddPasskey',
    description: 'The credential that a browser made.',
    example: {
      name: 'Work laptop',
      clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0',
      attestationObject: 'o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVik',
      transports: ['internal'],
    },
  })

const updatePasskey = z.strictObject({ name: passkeyName }).meta({
  id: 'UpdatePasskey',
  description: 'The new name of the passkey.',
  example: { name: 'Security key' },
})

const passkeyChallenge = z
  .object({
    challenge,
    rpId: z.string().meta({ description: 'The host name that passkeys belong to.' }),
    timeout: z.int().meta({ description: 'Milliseconds.' }),
    userVerification: z.literal('required'),
  })
  .meta({
    id: 'PasskeyChallenge',
    description:
      'What a browser asks a passkey with: `PublicKeyCredentialRequestOptionsJSON` of Web Authentication Level 3, for `PublicKeyCredential.parseRequestOptionsFromJSON()`.',
    example: {
      challenge: 'q83vEjRWeJASNFZ4kBI0VniQEjRWeJASNFZ4kBI0Vng',
      rpId: 'postern.example.com',
      timeout: passkeyMinutes * 60_000,
      userVerification: 'required',
    },
  })

const signInWithPasskey = z
  .strictObject({
    credentialId: bytes(1_400).meta({
      description: '`id` of the credential.',
      example: 'AQIDBAUGBwgJCgsMDQ4PEA',
    }),
    clientDataJSON: clientData,
    authenticatorData: bytes(4_096).meta({
      description: '`response.authenticatorData` of the credential, in base64url.',
      example: 'SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAQ',
    }),
    signature: bytes(4_096).meta({
      description: '`response.signature` of the credential, in base64url.',
      example: 'MEUCIQDQ3q1v',
    }),
    userHandle: bytes(100).meta({
      description: '`response.userHandle` of the credential, in base64url.',
      example: 'dXNyXzAxanF6NHg3bThlNXY5dDJrNnIzdzB5MWFi',
    }),
  })
  .meta({
    id: 'SignInWithPasskey',
    description: 'What a passkey answered.',
    example: {
      credentialId: 'AQIDBAUGBwgJCgsMDQ4PEA',
      clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0',
      authenticatorData: 'SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAQ',
      signature: 'MEUCIQDQ3q1v',
      userHandle: 'dXNyXzAxanF6NHg3bThlNXY5dDJrNnIzdzB5MWFi',
    },
  })

export type Passkey = z.infer<typeof passkey>
export type ProveAgain = z.infer<typeof proveAgain>
export type NewPasskeyOptions = z.infer<typeof newPasskeyOptions>
export type AddPasskey = z.infer<typeof addPasskey>
export type PasskeyChallenge = z.infer<typeof passkeyChallenge>
export type SignInWithPasskey = z.infer<typeof signInWithPasskey>

const ofSession = { tag: 'Session', caller: 'session', permission: null } as const
const open = { tag: 'Session', caller: 'none', permission: null } as const
const passkeyParam = z.object({ id: idSchema('passkey', 'Identifies the passkey.') })

export const passkeys = c.router({
  challenge: {
    method: 'POST',
    path: '/v1/session/passkey/options',
    summary: 'Begin to sign in with a passkey',
    description: `Makes a challenge for any passkey of this service. It is good for ${passkeyMinutes} minutes, and once.`,
    body: z.strictObject({}).optional(),
    ...outcome(
      { ...open, operationId: 'createPasskeyChallenge', readsDatabase: false, hasBody: true },
      { 200: passkeyChallenge },
    ),
  },
  signIn: {
    method: 'POST',
    path: '/v1/session/passkey',
    summary: 'Sign in with a passkey',
    description:
      'Starts a session of the dashboard and sets its cookie. The passkey replaces password and second factor, since it verifies its user itself. 401 for a passkey that is unknown or was removed, for a challenge that was used or has expired, and for a counter that went back.',
    body: signInWithPasskey,
    ...outcome(
      { ...open, operationId: 'signInWithPasskey', hasBody: true, errors: ['authentication_error'] },
      { 201: session },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/user/passkeys',
    summary: 'List your passkeys',
    description: 'The passkeys of the user, newest first.',
    query: z.strictObject(pageQuery),
    ...outcome({ ...ofSession, operationId: 'listPasskeys' }, { 200: pageOf(passkey, 'PasskeyPage') }),
  },
  options: {
    method: 'POST',
    path: '/v1/user/passkeys/options',
    summary: 'Begin to add a passkey',
    description: `Returns what a browser makes a passkey with. Asks for the password again, and where the user has a second factor for \`code\`: 401 \`second_factor_needed\` without it. A user without a password must have signed in within the last ten minutes. 409 for a user with ${maxPasskeys} passkeys.`,
    body: proveAgain,
    ...outcome(
      {
        ...ofSession,
        operationId: 'createPasskeyOptions',
        hasBody: true,
        errors: ['second_factor_needed', 'conflict'],
      },
      { 200: newPasskeyOptions },
    ),
  },
  add: {
    method: 'POST',
    path: '/v1/user/passkeys',
    summary: 'Add a passkey',
    description: `Stores the passkey that a browser made with the options, in the same session and within ${passkeyMinutes} minutes. 409 for a passkey that is stored already, and for a user with ${maxPasskeys} of them.`,
    body: addPasskey,
    ...outcome(
      { ...ofSession, operationId: 'addPasskey', hasBody: true, errors: ['conflict', 'rule_violation'] },
      { 201: passkey },
    ),
  },
  update: {
    method: 'PATCH',
    path: '/v1/user/passkeys/:id',
    summary: 'Rename a passkey',
    description: 'Gives a passkey of the user another name.',
    pathParams: passkeyParam,
    body: updatePasskey,
    ...outcome(
      { ...ofSession, operationId: 'updatePasskey', hasBody: true, errors: ['not_found', 'rule_violation'] },
      { 200: passkey },
    ),
  },
  remove: {
    method: 'DELETE',
    path: '/v1/user/passkeys/:id',
    summary: 'Remove a passkey',
    description: 'It signs the user in no more. Sessions that it started go on.',
    pathParams: passkeyParam,
    ...outcome({ ...ofSession, operationId: 'removePasskey', errors: ['not_found'] }, { 204: c.noBody() }),
  },
})
