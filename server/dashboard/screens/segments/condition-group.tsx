import { ActionIcon, Button, NativeSelect } from '@mantine/core'
import { IconPlus, IconX } from '@tabler/icons-react'
import { useRef } from 'react'
import { kindLabels } from './condition-labels.ts'
import { type Campaign, ConditionRow, type Topic } from './condition-row.tsx'
import {
  type Faults,
  type Group,
  type GroupKind,
  isGroup,
  type Node,
  newGroup,
  newLeaf,
  type Types,
} from './condition-tree.ts'

type Props = {
  group: Group
  types: Types
  campaigns: readonly Campaign[]
  /** All of the account. Undefined: not read, or the reader may not see them. */
  topics: readonly Topic[] | undefined
  faults: Faults
  /** Messages about what is missing, by the key of the node. Empty until the reader has asked to save. */
  missing: ReadonlyMap<string, string>
  /** Whether the reader may change it. */
  isEditable: boolean
  /** Groups around it. */
  depth: number
  /** Replaces the node with `key`. Null: takes it away. */
  onReplace: (key: string, by: (node: Node) => Node | null) => void
  /** Takes the group away. Undefined: it is the outermost. */
  onRemove?: () => void
}

/** Groups within each other that the editor offers. The API takes a few more levels. */
const offeredDepth = 2
const kindOptions = Object.entries(kindLabels).map(([value, label]) => ({ value, label }))

/** Conditions that go together, and groups of them. */
export function ConditionGroup(props: Props) {
  const { group, types, campaigns, topics, faults, missing, isEditable, depth, onReplace, onRemove } = props
  const add = useRef<HTMLButtonElement>(null)
  const append = (node: Node) =>
    onReplace(group.key, (latest) => (isGroup(latest) ? { ...latest, children: [...latest.children, node] } : latest))
  const remove = (key: string) => {
    onReplace(key, () => null)
    // The element with the focus is removed.
    add.current?.focus()
  }
  const fault = faults.get(group.key)?.whole ?? missing.get(group.key)
  return (
    <fieldset className="condition-group" aria-label={depth === 0 ? 'Conditions' : 'Group of conditions'}>
      <div className="condition-head">
        <NativeSelect
          aria-label="How the conditions go together"
          value={group.kind}
          onChange={(event) => {
            const kind = event.currentTarget.value as GroupKind
            onReplace(group.key, (latest) => ({ ...latest, kind }))
          }}
          data={kindOptions}
          disabled={!isEditable}
        />
        {onRemove !== undefined && isEditable && (
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Remove the group" onClick={onRemove}>
            <IconX size={16} aria-hidden />
          </ActionIcon>
        )}
      </div>
      {fault !== undefined && <p className="condition-fault">{fault}</p>}
      {group.children.map((child) =>
        isGroup(child) ? (
          <ConditionGroup
            {...props}
            key={child.key}
            group={child}
            depth={depth + 1}
            onRemove={() => remove(child.key)}
          />
        ) : (
          <ConditionRow
            key={child.key}
            leaf={child}
            types={types}
            campaigns={campaigns}
            topics={topics}
            faults={faults.get(child.key) ?? {}}
            missing={missing.get(child.key) ?? null}
            onChange={(leaf) => onReplace(child.key, () => leaf)}
            onRemove={isEditable ? () => remove(child.key) : undefined}
          />
        ),
      )}
      {isEditable && (
        <div className="condition-foot">
          <Button
            ref={add}
            size="xs"
            variant="default"
            leftSection={<IconPlus size={14} aria-hidden />}
            onClick={() => append(newLeaf())}
          >
            Add a condition
          </Button>
          {depth < offeredDepth && (
            <Button
              size="xs"
              variant="subtle"
              color="gray"
              onClick={() => append(newGroup([newLeaf()], group.kind === 'any' ? 'all' : 'any'))}
            >
              Add a group
            </Button>
          )}
        </div>
      )}
    </fieldset>
  )
}
