import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { boundedString, emailAddress, line, timestamp, wellFormedString } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { outcome } from './route.ts'

const c = initContract()

/** Length of a password. Characters. */
export const passwordLength = { min: 12, max: 256 } as const
/** A new secret of a second factor must be confirmed within this time. Minutes. */
export const totpConfirmMinutes = 15
/** Recovery codes that a user gets with a second factor. */
export const recoveryCodeCount = 10

/** Control and format characters (Unicode Cc, Cf): invisible, and some reverse the text after them. */
const unseen = /[\p{Cc}\p{Cf}]/u

/** A name that a user gives something: one visible line. */
export const objectName = line(200)
  .min(1)
  .refine((name) => name.trim() !== '', { error: 'must not be blank', params: { isRule: true } })
  .refine((name) => !unseen.test(name), { error: 'must not contain invisible characters', params: { isRule: true } })

export const userName = objectName.meta({ description: 'What people call the user.', example: 'Ada Lovelace' })

/** A password that a user has. It is compared, so no rule of new ones applies. */
export const password = boundedString(passwordLength.max)
  .min(1)
  .meta({ description: 'The password of the user.', example: 'correct horse battery staple' })

const newPassword = wellFormedString(passwordLength.max)
  .min(passwordLength.min)
  .meta({
    description: `The new password: ${passwordLength.min} to ${passwordLength.max} characters, and not the email address.`,
    example: 'correct horse battery staple',
  })

export const secondFactor = boundedString(32).min(6).meta({
  description: 'The six digits of the authenticator app, or one of the recovery codes.',
  example: '123456',
})

export const user = z
  .object({
    id: idSchema('user', 'Identifies the user.'),
    name: z.string(),
    email: emailAddress,
    isOperator: z.boolean().meta({ description: 'True for a user whom the command line marked as an operator.' }),
    hasPassword: z.boolean().meta({ description: 'False for a user who can sign in in other ways only.' }),
    hasTotp: z
      .boolean()
      .meta({ description: 'True when signing in with the password needs a code of an authenticator app (TOTP) too.' }),
    createdAt: timestamp,
  })
  .meta({
    id: 'User',
    description: 'A person who signs in to the dashboard.',
    example: {
      id: exampleId('user'),
      name: 'Ada Lovelace',
      email: 'ada@example.com',
      isOperator: false,
      hasPassword: true,
      hasTotp: false,
      createdAt: '2026-03-01T09:30:00.000Z',
    },
  })

const updateUser = z
  .strictObject({
    name: userName.optional(),
    password: z
      .strictObject({ current: password, new: newPassword })
      .optional()
      .meta({ description: 'Changes the password. All other sessions of the user end.' }),
  })
  .meta({ id: 'UpdateUser', description: 'The fields to change.', example: { name: 'Ada King' } })

const confirmPassword = z.strictObject({ password }).meta({
  id: 'ConfirmPassword',
  description: 'The password of the user, asked again.',
  example: { password: 'correct horse battery staple' },
})

const newTotp = z
  .object({
    secret: z.string().meta({ description: 'The shared secret in base32, to be typed into an authenticator app.' }),
    uri: z.string().meta({ description: 'The same as an `otpauth://` URI, to be shown as a QR code.' }),
  })
  .meta({
    id: 'NewTotp',
    description: 'The secret of a second factor. It is shown only once, and not in use until a code confirms it.',
    example: {
      secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
      uri: 'otpauth://totp/Postern:ada%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Postern',
    },
  })

const totpCode = z.strictObject({ code: secondFactor }).meta({
  id: 'TotpCode',
  description: 'A code of the authenticator app that has the new secret.',
  example: { code: '123456' },
})

const recoveryCodes = z.object({ recoveryCodes: z.array(z.string()).length(recoveryCodeCount) }).meta({
  id: 'RecoveryCodes',
  description: 'Each replaces a code of the authenticator app once. They are shown only once.',
  example: { recoveryCodes: Array.from({ length: recoveryCodeCount }, () => 'k3m7-x2pq-9rtv-w5zn') },
})

export type User = z.infer<typeof user>
export type UpdateUser = z.infer<typeof updateUser>
export type NewTotp = z.infer<typeof newTotp>
export type RecoveryCodes = z.infer<typeof recoveryCodes>

const ofSession = { tag: 'Session', caller: 'session', permission: null } as const

export const ownUser = c.router({
  update: {
    method: 'PATCH',
    path: '/v1/user',
    summary: 'Change your name or password',
    description:
      'Changes the user who is signed in. A new password ends all other sessions of the user, and this one gets a new cookie.',
    body: updateUser,
    ...outcome({ ...ofSession, operationId: 'updateUser', hasBody: true, errors: ['rule_violation'] }, { 200: user }),
  },
  createTotp: {
    method: 'POST',
    path: '/v1/user/totp',
    summary: 'Begin with a second factor',
    description: `Makes the secret for an authenticator app (TOTP, RFC 6238: SHA-1, 30 seconds, 6 digits). Signing in asks for a code once the first one has been confirmed. A secret that is not confirmed within ${totpConfirmMinutes} minutes ends. Called again before that, it makes another secret; 409 when a second factor is in use.`,
    body: confirmPassword,
    ...outcome({ ...ofSession, operationId: 'createTotp', hasBody: true, errors: ['conflict'] }, { 201: newTotp }),
  },
  confirmTotp: {
    method: 'POST',
    path: '/v1/user/totp/confirm',
    summary: 'Confirm the second factor',
    description:
      'Puts the second factor into use with the first code of the authenticator app, and returns the recovery codes. 409 when there is no secret to confirm.',
    body: totpCode,
    ...outcome(
      { ...ofSession, operationId: 'confirmTotp', hasBody: true, errors: ['conflict'] },
      { 200: recoveryCodes },
    ),
  },
  removeTotp: {
    method: 'POST',
    path: '/v1/user/totp/remove',
    summary: 'Remove the second factor',
    description: 'Signing in needs the password alone from then on. Also when there is no second factor.',
    body: confirmPassword,
    ...outcome({ ...ofSession, operationId: 'removeTotp', hasBody: true }, { 204: c.noBody() }),
  },
})
