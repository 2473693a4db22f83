import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { OperatorAccountService } from '../../operator/accounts.ts'
import type { InstanceService } from '../../operator/instance.ts'
import { authorOf } from '../../users/sessions.ts'
import type { SessionEndpoints } from '../session-endpoint.ts'

/** Only a session of an operator reaches these: `requirePermission` sees to it. */
export function operatorRoutes(
  { accounts, instance }: { accounts: OperatorAccountService; instance: InstanceService },
  { signedIn }: SessionEndpoints,
) {
  return initServer().router(contract.operator, {
    listAccounts: signedIn(async ({ query }, { db }) => ({ status: 200, body: await accounts.list(db, query) })),
    getAccount: signedIn(async ({ params }, { db }) => ({ status: 200, body: await accounts.get(db, params.id) })),
    updateAccount: signedIn(async ({ params, body }, { db, client, signedIn: { userId, userName } }) => {
      const author = authorOf({ id: userId, name: userName }, client)
      return { status: 200, body: await accounts.changePlan(db, author, { id: params.id, plan: body.plan }) }
    }),
    listMembers: signedIn(async ({ params, query }, { db }) => ({
      status: 200,
      body: await accounts.members(db, params.id, query),
    })),
    listPlans: signedIn(async () => ({ status: 200, body: accounts.plans() })),
    getInstance: signedIn(async (_input, { db }) => ({ status: 200, body: await instance.health(db) })),
    getStorage: signedIn(async (_input, { db }) => ({ status: 200, body: await instance.storage(db) })),
  })
}
