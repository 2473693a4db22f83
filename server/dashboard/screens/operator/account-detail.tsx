import { Button } from '@mantine/core'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { Result } from '../../api/client.ts'
import { type RowOf, useGet, useList } from '../../api/hooks.ts'
import { Copyable } from '../../components/copyable.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ExactTime, Time } from '../../components/time.tsx'
import { roleLabels } from '../settings/roles.ts'
import { Allowances, Months } from '../usage-tables.tsx'
import { ChangePlan } from './change-plan.tsx'

type Account = Result<'GET /v1/operator/accounts/:id'>
type Member = RowOf<'GET /v1/operator/accounts/:id/members'>

const parent = { label: 'Accounts', path: '/accounts' }

/** One account: its plan, what it uses, and its members. */
export function AccountDetail() {
  const { id = '' } = useParams({ strict: false })
  const account = useGet('GET /v1/operator/accounts/:id', { params: { id } })
  const [isChanging, setChanging] = useState(false)
  const { data } = account
  return (
    <Screen
      title={data?.name ?? 'Account'}
      parent={parent}
      action={data && <Button onClick={() => setChanging(true)}>Change plan</Button>}
    >
      <Loaded query={account} what="account">
        {(found) => <Details account={found} />}
      </Loaded>
      {isChanging && data && <ChangePlan account={data} onClose={() => setChanging(false)} />}
    </Screen>
  )
}

function Details({ account }: { account: Account }) {
  const { id, plan, createdAt, lastUsedAt } = account
  return (
    <>
      <Facts
        of={[
          ['ID', <Copyable key="id" value={id} label="Copy the id of the account" />],
          ['Plan', <strong key="plan">{plan}</strong>],
          ['Created', <ExactTime key="created" at={createdAt} />],
          ['A key was last used', <Time key="used" at={lastUsedAt} none="Never" />],
        ]}
      />
      <Section title="Limits">
        <Allowances usage={account} />
      </Section>
      <Section title="By month, in live mode">
        <Months months={account.months} />
      </Section>
      <Section title="Members">
        <Members id={id} />
      </Section>
    </>
  )
}

const memberColumns: readonly Column<Member>[] = [
  {
    header: 'Name',
    cell: ({ name, email }) => (
      <>
        <span title={name}>{name}</span>
        <span className="second-line">{email}</span>
      </>
    ),
  },
  { header: 'Role', width: '120px', cell: ({ role }) => roleLabels[role].label },
  { header: 'Second factor', width: '130px', isMinor: true, cell: ({ hasTotp }) => (hasTotp ? 'On' : 'Off') },
  {
    header: 'Last signed in',
    width: '150px',
    isMinor: true,
    cell: ({ lastSignedInAt }) => <Time at={lastSignedInAt} none="Never" />,
  },
]

function Members({ id }: { id: string }) {
  const list = useList('GET /v1/operator/accounts/:id/members', { params: { id } })
  return (
    <DataTable
      label="Members"
      list={list}
      columns={memberColumns}
      keyOf={({ userId }) => userId}
      empty={
        <Empty title="No members yet">
          The command line invites people: <code>users invite</code>
        </Empty>
      }
    />
  )
}
