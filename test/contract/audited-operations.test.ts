import { expect, test } from 'vitest'
import { auditActions } from '../../contract/audit-actions.ts'
import { operations } from '../support/published-spec.ts'
import { auditedOperations, ofTheCommandLine, unauditedOperations } from './audited-operations.ts'

/* That an operation writes what stands here is seen in every-status.test.ts and in test/users/audit-entries.test.ts. */

test('each operation that writes has an action in the audit log, or a reason why not', () => {
  const writing = operations.filter(({ method }) => method !== 'GET').map(({ id }) => id)
  const judged = [...Object.keys(auditedOperations), ...Object.keys(unauditedOperations)]
  expect(judged.toSorted()).toEqual(writing.toSorted())
})

test('each action of the audit log is written by an operation or by the command line', () => {
  const written = new Set([...Object.values(auditedOperations).flat(), ...ofTheCommandLine])
  expect([...written].toSorted()).toEqual(Object.keys(auditActions).toSorted())
})
