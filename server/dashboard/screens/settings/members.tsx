import { Button, Menu } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import type { Role } from '../../../../contract/roles.ts'
import { type RowOf, useChange, useList } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { actionsColumn, type Column, DataTable } from '../../components/data-table.tsx'
import { Section } from '../../components/facts.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { Time } from '../../components/time.tsx'
import { ChangeRole } from './change-role.tsx'
import { Invite } from './invite.tsx'
import { roleLabels, rolesGivenBy } from './roles.ts'

type Member = RowOf<'GET /v1/members'>
type Invitation = RowOf<'GET /v1/invitations'>

type Asked =
  | { act: 'invite' }
  | { act: 'role' | 'remove'; member: Member }
  | { act: 'withdraw'; invitation: Invitation }

/** The members of the account, and its open invitations. */
export function Members() {
  const { account, can, session } = useScope()
  const [asked, setAsked] = useState<Asked | null>(null)
  const members = useList('GET /v1/members', {})
  const invitations = useList('GET /v1/invitations', {})
  // Both at once, so that those who are invited do not come in later and move what is shown.
  const isReading = invitations.rows === undefined && invitations.error === null
  const shown = isReading ? { ...members, rows: undefined } : members
  const mayWrite = can('members:write')
  const mayChange = (role: Role) => mayWrite && rolesGivenBy(account.role).includes(role)
  const close = () => setAsked(null)

  const columns: Column<Member>[] = [
    {
      header: 'Name',
      cell: ({ name, email, userId }) => (
        <>
          {name}
          {userId === session.user.id && <span className="dimmed"> (you)</span>}
          <span className="second-line">{email}</span>
        </>
      ),
    },
    { header: 'Role', width: '120px', cell: ({ role }) => roleLabels[role].label },
    { header: 'Second factor', width: '130px', isMinor: true, cell: ({ hasTotp }) => (hasTotp ? 'On' : 'Off') },
    {
      header: 'Last signed in',
      width: '140px',
      isMinor: true,
      cell: ({ lastSignedInAt }) => <Time at={lastSignedInAt} none="Never" />,
    },
  ]
  if (mayWrite) {
    columns.push(
      actionsColumn(
        '56px',
        (member) =>
          mayChange(member.role) && (
            <RowMenu of={member.name}>
              <Menu.Item onClick={() => setAsked({ act: 'role', member })}>Change role</Menu.Item>
              <Menu.Item color="red" onClick={() => setAsked({ act: 'remove', member })}>
                Remove
              </Menu.Item>
            </RowMenu>
          ),
      ),
    )
  }
  return (
    <Screen
      title="Members"
      subtitle="People who can sign in to this account."
      action={
        mayWrite && (
          <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setAsked({ act: 'invite' })}>
            Invite
          </Button>
        )
      }
    >
      <DataTable label="Members" list={shown} columns={columns} keyOf={({ userId }) => userId} empty={null} />
      {((invitations.rows?.length ?? 0) > 0 || invitations.error !== null) && (
        <Section title="Invited">
          <DataTable
            label="Invitations"
            list={invitations}
            keyOf={({ id }) => id}
            empty={null}
            columns={[
              {
                header: 'Email',
                cell: ({ email, emailStatus }) => (
                  <>
                    {email}
                    <span className="second-line">{deliveryLabels[emailStatus]}</span>
                  </>
                ),
              },
              { header: 'Role', width: '104px', cell: ({ role }) => roleLabels[role].label },
              { header: 'Expires', width: '140px', isMinor: true, cell: ({ expiresAt }) => <Time at={expiresAt} /> },
              actionsColumn<Invitation>(
                '112px',
                (invitation) =>
                  mayChange(invitation.role) && (
                    <Button
                      size="compact-xs"
                      variant="default"
                      aria-label={`Withdraw the invitation of ${invitation.email}`}
                      onClick={() => setAsked({ act: 'withdraw', invitation })}
                    >
                      Withdraw
                    </Button>
                  ),
              ),
            ]}
          />
        </Section>
      )}
      {asked?.act === 'invite' && <Invite onClose={close} />}
      {asked?.act === 'role' && <ChangeRole member={asked.member} onClose={close} />}
      {asked?.act === 'remove' && <RemoveMember member={asked.member} onClose={close} />}
      {asked?.act === 'withdraw' && <Withdraw invitation={asked.invitation} onClose={close} />}
    </Screen>
  )
}

/** The labels for the status of the email with an invitation. */
const deliveryLabels: Readonly<Record<Invitation['emailStatus'], string>> = {
  none: 'Link was shown',
  queued: 'Being sent',
  sent: 'Sent by email',
  failed: 'Not delivered',
}

function RemoveMember({ member: { userId, name }, onClose }: { member: Member; onClose: () => void }) {
  const { account } = useScope()
  const remove = useChange('DELETE /v1/members/:userId')
  const onSuccess = () => {
    notifications.show({ message: `${name} was removed.` })
    onClose()
  }
  return (
    <Confirm
      title={`Remove ${name}?`}
      action={`Remove ${name}`}
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { userId } }, { onSuccess })}
    >
      {name} can no longer see or change anything in {account.name}. To undo this, invite them again. API keys that they
      made keep working: revoke those under API keys.
    </Confirm>
  )
}

function Withdraw({ invitation: { id, email }, onClose }: { invitation: Invitation; onClose: () => void }) {
  const withdraw = useChange('DELETE /v1/invitations/:id')
  return (
    <Confirm
      title={`Withdraw the invitation of ${email}?`}
      action="Withdraw it"
      isRunning={withdraw.isPending}
      error={withdraw.error}
      onClose={onClose}
      onConfirm={() => withdraw.mutate({ params: { id } }, { onSuccess: onClose })}
    >
      The link stops working at once.
    </Confirm>
  )
}
