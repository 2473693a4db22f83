import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { UserServices } from '../../users/service.ts'
import type { SessionEndpoints } from '../session-endpoint.ts'

type Signing = Pick<UserServices, 'sessions' | 'signIn'>

export function sessionRoutes({ sessions, signIn }: Signing, { open, signedIn }: SessionEndpoints) {
  return initServer().router(contract.sessions, {
    create: open(async ({ body }, { db, client, formerToken, setToken }) => {
      const { session, token } = await signIn.signIn(db, body, client, formerToken)
      setToken(token)
      return { status: 201, body: session }
    }),
    current: signedIn(async (_input, { db, signedIn }) => ({ status: 200, body: await sessions.get(db, signedIn) })),
    deleteCurrent: signedIn(async (_input, { db, signedIn, client, setToken }) => {
      await sessions.signOut(db, signedIn, client)
      setToken(null)
      return { status: 204, body: undefined }
    }),
    list: signedIn(async ({ query }, { db, signedIn }) => ({
      status: 200,
      body: await sessions.list(db, signedIn, query),
    })),
    end: signedIn(async ({ params }, { db, signedIn, client, setToken }) => {
      await sessions.end(db, signedIn, { id: params.id, client })
      if (params.id === signedIn.sessionId) setToken(null)
      return { status: 204, body: undefined }
    }),
    endOthers: signedIn(async (_input, { db, signedIn, client }) => {
      await sessions.endOthers(db, signedIn, client)
      return { status: 204, body: undefined }
    }),
  })
}

export function linkRoutes(
  { links, accountEmails }: Pick<UserServices, 'links' | 'accountEmails'>,
  { open }: SessionEndpoints,
) {
  return initServer().router(contract.links, {
    requestReset: open(async ({ body }, { db, client }) => {
      await accountEmails.requestReset(db, body.email, client)
      return { status: 202, body: undefined }
    }),
    lookUp: open(async ({ body }, { db }) => ({ status: 200, body: await links.lookUp(db, body.token) })),
    accept: open(async ({ body }, { db, client, setToken }) => {
      const { session, token } = await links.accept(db, body, client)
      setToken(token)
      return { status: 201, body: session }
    }),
  })
}

export function ownUserRoutes({ ownUser }: Pick<UserServices, 'ownUser'>, { signedIn }: SessionEndpoints) {
  return initServer().router(contract.ownUser, {
    update: signedIn(async ({ body }, { db, signedIn, client, setToken }) => {
      const { user, token } = await ownUser.update(db, signedIn, { given: body, client })
      if (token !== null) setToken(token)
      return { status: 200, body: user }
    }),
    createTotp: signedIn(async ({ body }, { db, signedIn, client }) => ({
      status: 201,
      body: await ownUser.createTotp(db, signedIn, { password: body.password, client }),
    })),
    confirmTotp: signedIn(async ({ body }, { db, signedIn, client }) => ({
      status: 200,
      body: await ownUser.confirmTotp(db, signedIn, { code: body.code, client }),
    })),
    removeTotp: signedIn(async ({ body }, { db, signedIn, client }) => {
      await ownUser.removeTotp(db, signedIn, { password: body.password, client })
      return { status: 204, body: undefined }
    }),
  })
}
