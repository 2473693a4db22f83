import type { Result } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { Copyable } from '../../components/copyable.tsx'
import { Facts, Section } from '../../components/facts.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Screen } from '../../components/screen.tsx'
import { ExactTime } from '../../components/time.tsx'
import { Allowances, Months } from '../usage-tables.tsx'

type Account = Result<'GET /v1/account'>

const pollMs = 15_000

/** The plan of the account, and what it uses of its limits. */
export function Usage() {
  const account = useGet('GET /v1/account', {}, { pollMs: () => pollMs })
  return (
    <Screen title="Plan and usage" subtitle="What this account may use, and what it uses.">
      <Loaded query={account} what="account">
        {(data) => <Figures account={data} />}
      </Loaded>
    </Screen>
  )
}

function Figures({ account }: { account: Account }) {
  const { id, name, plan, createdAt, mode } = account
  return (
    <>
      <Facts
        of={[
          ['Account', name],
          ['ID', <Copyable key="id" value={id} label="Copy the id of the account" />],
          ['Plan', <strong key="plan">{plan}</strong>],
          ['Created', <ExactTime key="created" at={createdAt} />],
        ]}
      />
      <Section title="Limits">
        <Allowances usage={account} />
        <p className="dimmed note">
          Requests beyond the limit of a minute are refused with 429. Your service’s operator changes the plan.
        </p>
      </Section>
      <Section title={mode === 'test' ? 'By month, in test mode' : 'By month'}>
        <Months months={account.months} />
      </Section>
    </>
  )
}
