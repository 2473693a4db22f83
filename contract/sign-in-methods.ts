import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { outcome } from './route.ts'

const c = initContract()

const signInMethods = z
  .object({
    passkeyOrigin: z.string().nullable().meta({
      description:
        'The origin of the pages that passkeys work on. Null: on none, because `PUBLIC_URL` has neither https nor `localhost`, or has no host name.',
      example: 'https://postern.example.com',
    }),
    provider: z
      .object({
        name: z.string().meta({ description: 'What users know it as.' }),
        origin: z.string().meta({ description: 'The origin of the pages that it leads back to.' }),
      })
      .nullable()
      .meta({ description: 'The identity provider (OpenID Connect); null: none.' }),
  })
  .meta({
    id: 'SignInMethods',
    description: 'How users can sign in, besides email address and password.',
    example: {
      passkeyOrigin: 'https://postern.example.com',
      provider: { name: 'Example', origin: 'https://postern.example.com' },
    },
  })

export type SignInMethods = z.infer<typeof signInMethods>

export const signInMethodRoutes = c.router({
  get: {
    method: 'GET',
    path: '/v1/sign-in-methods',
    summary: 'Get the ways to sign in',
    description: 'What the page to sign in offers, besides email address and password.',
    ...outcome(
      { operationId: 'getSignInMethods', tag: 'Session', caller: 'none', permission: null, readsDatabase: false },
      { 200: signInMethods },
    ),
  },
})
