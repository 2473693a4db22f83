import { Button, Group, Menu, Stack, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useBlocker, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { ApiError, Input } from '../../api/client.ts'
import { useGet } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { CodeField } from '../../components/code-field.tsx'
import { Copyable } from '../../components/copyable.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { LeaveUnsaved } from '../../components/leave-unsaved.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { bodyOfMarkup, type Markup, MarkupField, markupWritten } from '../../components/markup-field.tsx'
import { MoreMenu } from '../../components/row-menu.tsx'
import { Screen } from '../../components/screen.tsx'
import { State } from '../../components/state.tsx'
import { DeleteTemplate } from './delete-template.tsx'
import { PreviewPane } from './preview-pane.tsx'
import { PublishTemplate } from './publish-template.tsx'
import { publicationOf, type Template, type TemplatePreview, versionOf } from './template.ts'
import { TemplateVersions } from './template-versions.tsx'
import { type SaveState, useAutosave } from './use-autosave.ts'
import { useRendering } from './use-rendering.ts'
import { VariableFields, variableOf, type WrittenVariable, writtenOf } from './variable-fields.tsx'

/** One template: its draft, what it becomes, and what emails get. */
export function TemplateEditor() {
  const { id = '' } = useParams({ strict: false })
  const query = useGet('GET /v1/templates/:id', { params: { id } })
  if (query.data !== undefined) return <Editor key={id} template={query.data} />
  return (
    <Screen title="Template" parent={{ label: 'Templates', path: '/templates' }}>
      <Loaded query={query} what="template">
        {() => null}
      </Loaded>
    </Screen>
  )
}

type Values = Pick<Template, 'name' | 'subject'> & {
  preheader: string
  markup: Markup
  text: string
  variables: WrittenVariable[]
}

function Editor({ template }: { template: Template }) {
  const { can, accountId, mode, call } = useScope()
  const client = useQueryClient()
  const { id } = template
  const mayWrite = can('templates:write')
  const [values, setValues] = useState<Values>(() => ({
    name: template.name,
    subject: template.subject,
    preheader: template.preheader ?? '',
    markup: markupWritten(template),
    text: template.text ?? '',
    variables: template.variables.map(writtenOf),
  }))
  const { state, retry } = useAutosave(values, async (changes) => {
    const written = await call('PATCH /v1/templates/:id', { params: { id }, body: bodyOf(changes) })
    client.setQueryData([accountId, mode, 'GET /v1/templates/:id', { params: { id } }], written)
    void client.invalidateQueries({ queryKey: [accountId, mode, 'GET /v1/templates'] })
  })
  const rendering = useRendering(template)
  const errors = state.kind === 'failed' ? errorsOf(state.error, values) : {}
  // A refused draft that is left is lost: only then is there something to ask.
  const blocker = useBlocker({
    shouldBlockFn: () => state.kind === 'failed',
    enableBeforeUnload: () => state.kind !== 'saved',
    withResolver: true,
  })
  const isAtField = Object.keys(errors).length > 0
  const set = <Name extends keyof Values>(name: Name, value: Values[Name]) =>
    setValues((before) => ({ ...before, [name]: value }))
  const faultsOf = (part: TemplatePreview['errors'][number]['part']) =>
    rendering.data?.errors.filter((fault) => fault.part === part) ?? []
  const faultOf = (part: 'subject' | 'preheader') => errors[part] ?? faultsOf(part)[0]?.message
  return (
    <Screen
      title={template.name}
      parent={{ label: 'Templates', path: '/templates' }}
      subtitle={
        <Group gap="md">
          <State of={publicationOf(template)} />
          <span>{versionOf(template)}</span>
          {mayWrite && <SaveWord state={state} />}
          <Copyable label="Copy the ID" value={id} />
        </Group>
      }
      action={mayWrite && <TemplateActions template={template} isSaved={state.kind === 'saved'} />}
    >
      {blocker.status === 'blocked' && (
        <LeaveUnsaved onLeave={blocker.proceed} onStay={blocker.reset} what="The last changes of the template" />
      )}
      <div className="editor">
        <Stack>
          {state.kind === 'failed' && !isAtField && <ErrorNotice error={state.error} onRetry={retry} />}
          <TextInput
            label="Name"
            readOnly={!mayWrite}
            maxLength={200}
            value={values.name}
            error={errors.name}
            onChange={(event) => set('name', event.currentTarget.value)}
          />
          <TextInput
            label="Subject"
            readOnly={!mayWrite}
            value={values.subject}
            error={faultOf('subject')}
            onChange={(event) => set('subject', event.currentTarget.value)}
          />
          <TextInput
            label="Preheader"
            description="What mail programs show beside the subject. May be empty."
            readOnly={!mayWrite}
            value={values.preheader}
            error={faultOf('preheader')}
            onChange={(event) => set('preheader', event.currentTarget.value)}
          />
          <MarkupField
            description="Liquid: {{ firstName }} stands for a variable. Values are escaped."
            isReadOnly={!mayWrite}
            value={values.markup}
            errors={{ html: errors.html, mjml: errors.mjml }}
            faults={{ html: faultsOf('html'), mjml: faultsOf('mjml') }}
            onChange={(markup) => set('markup', markup)}
          />
          <CodeField
            label="Text"
            description="For mail programs that show no HTML. Empty: it is made from the HTML."
            rows={6}
            isReadOnly={!mayWrite}
            value={values.text}
            error={errors.text ?? null}
            faults={faultsOf('text')}
            onChange={(value) => set('text', value)}
          />
          <VariableFields
            variables={values.variables}
            errors={errors}
            isReadOnly={!mayWrite}
            onChange={(variables) => set('variables', variables)}
          />
        </Stack>
        <PreviewPane rendering={rendering} />
      </div>
      <TemplateVersions template={template} />
    </Screen>
  )
}

function SaveWord({ state }: { state: SaveState }) {
  const words = { saved: 'Draft saved', saving: 'Saving …', failed: 'Not saved' }
  return <output className={state.kind === 'failed' ? 'not-saved' : undefined}>{words[state.kind]}</output>
}

type ActionProps = { template: Template; isSaved: boolean }

function TemplateActions({ template, isSaved }: ActionProps) {
  const { mode } = useScope()
  const [act, setAct] = useState<'publish' | 'delete' | null>(null)
  const close = () => setAct(null)
  const isLive = mode === 'live'
  return (
    <Group gap="xs">
      <MoreMenu>
        <Menu.Item color="red" disabled={!isLive} onClick={() => setAct('delete')}>
          {isLive ? 'Delete' : 'Delete (in live mode)'}
        </Menu.Item>
      </MoreMenu>
      <Button disabled={!isLive || !isSaved || !template.hasUnpublishedChanges} onClick={() => setAct('publish')}>
        {isLive ? 'Publish' : 'Publish (in live mode)'}
      </Button>
      {act === 'publish' && <PublishTemplate template={template} onClose={close} />}
      {act === 'delete' && <DeleteTemplate template={template} leadsTo="/templates" onClose={close} />}
    </Group>
  )
}

/** Returns what the API takes of the fields that were changed. Variables without a name are not written yet. */
function bodyOf({
  preheader,
  markup,
  text,
  variables,
  ...rest
}: Partial<Values>): Input<'PATCH /v1/templates/:id'>['body'] {
  return {
    ...rest,
    ...(preheader !== undefined && { preheader: preheader === '' ? null : preheader }),
    ...(markup !== undefined && bodyOfMarkup(markup)),
    ...(text !== undefined && { text: text === '' ? null : text }),
    ...(variables !== undefined && { variables: named(variables).map(variableOf) }),
  }
}

function named(variables: readonly WrittenVariable[]): WrittenVariable[] {
  return variables.filter(({ name }) => name !== '')
}

/** Returns why fields are refused, by field; of a variable by its key. */
function errorsOf({ details }: ApiError, { variables }: Values): Record<string, string> {
  const sent = named(variables)
  return Object.fromEntries(
    details.map(({ path, message }) => {
      const [, index, field] = /^body\.variables\[(\d+)\]\.?(\w*)/.exec(path) ?? []
      const place = index === undefined ? path.replace(/^body\./, '') : `${sent[Number(index)]?.key}.${field || 'name'}`
      return [place, message.charAt(0).toUpperCase() + message.slice(1)]
    }),
  )
}
