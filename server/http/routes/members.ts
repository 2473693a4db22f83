import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { MemberService } from '../../users/members.ts'
import type { Endpoint } from '../route-handler.ts'

export function memberRoutes(members: MemberService, endpoint: Endpoint) {
  return initServer().router(contract.members, {
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await members.list(handle, scope.accountId, query),
    })),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await members.update(handle, scope, { userId: params.userId, role: body.role }),
    })),
    remove: endpoint(async ({ params }, { handle, scope }) => {
      await members.remove(handle, scope, params.userId)
      return { status: 204, body: undefined }
    }),
  })
}

export function invitationRoutes(members: MemberService, endpoint: Endpoint) {
  return initServer().router(contract.invitations, {
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await members.listInvitations(handle, scope.accountId, query),
    })),
    create: endpoint(async ({ body }, { handle, scope }) => ({
      status: 201,
      body: await members.invite(handle, scope, body),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await members.deleteInvitation(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
  })
}
