import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { UserServices } from '../../users/service.ts'
import type { SessionEndpoints } from '../session-endpoint.ts'

export function identityRoutes({ provider }: Pick<UserServices, 'provider'>, { open, signedIn }: SessionEndpoints) {
  return initServer().router(contract.identities, {
    begin: open(async (_, { setPending }) => {
      const { request, pending } = await provider.begin()
      setPending(pending)
      return { status: 200, body: request }
    }),
    signIn: open(async ({ body }, { db, client, pending, formerToken, setToken, setPending }) => {
      const { session, token } = await provider.signIn(db, { answer: body, pending, client }, formerToken)
      setToken(token)
      setPending(null)
      return { status: 201, body: session }
    }),
    list: signedIn(async ({ query }, { db, signedIn }) => ({
      status: 200,
      body: await provider.list(db, signedIn, query),
    })),
    options: signedIn(async ({ body }, { db, signedIn, client, setPending }) => {
      const { request, pending } = await provider.beginLink(db, signedIn, { proof: body, client })
      setPending(pending)
      return { status: 200, body: request }
    }),
    add: signedIn(async ({ body }, { db, signedIn, client, pending, setPending }) => {
      const identity = await provider.link(db, signedIn, { answer: body, pending, client })
      setPending(null)
      return { status: 201, body: identity }
    }),
    remove: signedIn(async ({ params }, { db, signedIn, client }) => {
      await provider.unlink(db, signedIn, { id: params.id, client })
      return { status: 204, body: undefined }
    }),
  })
}
