import { Button, Menu, Text } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { type RowOf, useChange, useList } from '../../api/hooks.ts'
import { useSignInMethods } from '../../api/passkeys.ts'
import { leaveFor } from '../../api/provider.ts'
import { callForUser } from '../../api/query-client.ts'
import { useScope } from '../../api/scope.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { actionsColumn, type Column, DataTable } from '../../components/data-table.tsx'
import { Section } from '../../components/facts.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Time } from '../../components/time.tsx'
import { useApiForm } from '../../components/use-api-form.ts'
import { ProofFields, proofOf } from './proof-fields.tsx'

type Identity = RowOf<'GET /v1/user/identities'>

/** The link of the user to the identity provider, where the service has one. */
export function Identities() {
  const provider = useSignInMethods()?.provider
  return provider === undefined || provider === null ? null : <Links {...provider} />
}

function Links({ name, origin }: { name: string; origin: string }) {
  const [asked, setAsked] = useState<'link' | Identity | null>(null)
  const list = useList('GET /v1/user/identities', {})
  const close = () => setAsked(null)
  const isHere = origin === window.location.origin
  const canLink = isHere && list.rows?.length === 0

  const columns: Column<Identity>[] = [
    {
      header: 'Linked to',
      cell: ({ label, issuer }) => (
        <>
          {label ?? name}
          <span className="second-line">{issuer}</span>
        </>
      ),
    },
    { header: 'Last used', width: '140px', cell: ({ lastUsedAt }) => <Time at={lastUsedAt} none="Never" /> },
    { header: 'Linked', width: '140px', isMinor: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
    actionsColumn('56px', (identity) => (
      <RowMenu of={identity.label ?? name}>
        <Menu.Item color="red" onClick={() => setAsked(identity)}>
          Remove the link
        </Menu.Item>
      </RowMenu>
    )),
  ]

  return (
    <Section
      title={name}
      action={
        canLink && (
          <Button
            size="xs"
            variant="default"
            leftSection={<IconPlus size={16} aria-hidden />}
            onClick={() => setAsked('link')}
          >
            Link {name}
          </Button>
        )
      }
    >
      {!isHere && (
        <Text c="dimmed" maw={560} mb="sm">
          It works at <a href={`${origin}/app`}>{origin}</a>, and not at the address of this page.
        </Text>
      )}
      <DataTable
        label={`Links to ${name}`}
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Text c="dimmed" maw={560}>
            Not linked yet. Once linked, {name} signs you in, without password and code.
          </Text>
        }
      />
      {asked === 'link' && <LinkProvider name={name} onClose={close} />}
      {asked !== null && asked !== 'link' && <Unlink identity={asked} name={name} onClose={close} />}
    </Section>
  )
}

function LinkProvider({ name, onClose }: { name: string; onClose: () => void }) {
  const { user } = useScope().session
  const [needsCode, setNeedsCode] = useState(false)
  const { form, ...sending } = useApiForm({
    initial: { password: '', code: '' },
    send: async (proof) => {
      try {
        const body = proofOf(proof, { hasPassword: user.hasPassword, needsCode })
        const { url } = await callForUser('POST /v1/user/identities/options', { body })
        leaveFor(url, { purpose: 'link', next: window.location.pathname.replace(/^\/app/, '') })
      } catch (thrown) {
        if (!(thrown instanceof ApiError && thrown.code === 'second_factor_needed')) throw thrown
        setNeedsCode(true)
      }
    },
  })
  return (
    <FormDialog title={`Link ${name}`} action="Continue" {...sending} onClose={onClose}>
      <Text>You sign in at {name}, and come back here.</Text>
      <ProofFields form={form} hasPassword={user.hasPassword} needsCode={needsCode} />
    </FormDialog>
  )
}

function Unlink({ identity, name, onClose }: { identity: Identity; name: string; onClose: () => void }) {
  const remove = useChange('DELETE /v1/user/identities/:id')
  return (
    <Confirm
      title={`Remove the link to ${identity.label ?? name}?`}
      action="Remove the link"
      isRunning={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { id: identity.id } }, { onSuccess: onClose })}
    >
      {name} signs you in no more. Sessions that it has started go on.
    </Confirm>
  )
}
