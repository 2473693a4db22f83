import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { UserServices } from '../../users/service.ts'
import type { SessionEndpoints } from '../session-endpoint.ts'

export function passkeyRoutes({ passkeys }: Pick<UserServices, 'passkeys'>, { open, signedIn }: SessionEndpoints) {
  return initServer().router(contract.passkeys, {
    challenge: open(async () => ({ status: 200, body: passkeys.challenge() })),
    signIn: open(async ({ body }, { db, client, formerToken, setToken }) => {
      const { session, token } = await passkeys.signIn(db, body, client, formerToken)
      setToken(token)
      return { status: 201, body: session }
    }),
    list: signedIn(async ({ query }, { db, signedIn }) => ({
      status: 200,
      body: await passkeys.list(db, signedIn, query),
    })),
    options: signedIn(async ({ body }, { db, signedIn, client }) => ({
      status: 200,
      body: await passkeys.options(db, signedIn, { proof: body, client }),
    })),
    add: signedIn(async ({ body }, { db, signedIn, client }) => ({
      status: 201,
      body: await passkeys.add(db, signedIn, { passkey: body, client }),
    })),
    update: signedIn(async ({ params, body }, { db, signedIn, client }) => ({
      status: 200,
      body: await passkeys.rename(db, signedIn, { id: params.id, name: body.name, client }),
    })),
    remove: signedIn(async ({ params }, { db, signedIn, client }) => {
      await passkeys.remove(db, signedIn, { id: params.id, client })
      return { status: 204, body: undefined }
    }),
  })
}

export function signInMethodRoutes({ methods }: Pick<UserServices, 'methods'>, { open }: SessionEndpoints) {
  return initServer().router(contract.signInMethods, {
    get: open(async () => ({ status: 200, body: methods() })),
  })
}
