import {
  type ContactProperty,
  type CreateContactProperty,
  propertyLimits,
  type UpdateContactProperty,
} from '../../contract/contact-properties.ts'
import { record } from '../audit-log/record.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Db, type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { brokenRule, DomainError } from '../shared/errors.ts'
import type { AuthoredScope } from '../shared/scope.ts'
import {
  clearNextValues,
  insertProperty,
  lockProperty,
  markPropertyDeleted,
  type PropertyRow,
  selectDeletedProperties,
  selectProperties,
  updateProperty,
} from './property-queries.ts'
import { faultOfValue } from './property-values.ts'

/** Use cases for the properties of people, which both modes share. Throws DomainErrors. */
export type ContactPropertyService = {
  /**
   * Declares a property. Throws `conflict` for a key that is there or whose values are still being taken from people,
   * and when the account has 100 properties; `rule_violation` for a fallback of another type.
   */
  create(handle: Handle, accountId: string, property: CreateContactProperty): Promise<ContactProperty>
  /** Returns all properties of an account, by key. */
  list(handle: Handle, accountId: string): Promise<ContactProperty[]>
  update(handle: Handle, accountId: string, key: string, patch: UpdateContactProperty): Promise<ContactProperty>
  /**
   * Deletes a property: nothing shows it any more, and nobody gets a value of it. The values of people are taken away
   * in small transactions: of the first 2,000 people at once, of others by `clearDeletedProperties`.
   */
  delete(handle: Handle, scope: AuthoredScope, key: string): Promise<void>
}

export function createContactPropertyService({ clock }: { clock: Clock }): ContactPropertyService {
  return {
    async create(handle, accountId, { key, type, fallback = null }) {
      assertFallback(type, fallback)
      return inTransaction(handle, async (trx) => {
        await lockAccount(trx, accountId)
        const rows = await selectProperties(trx, accountId)
        const same = rows.find((row) => row.key === key)
        if (same?.deleted_at === null) throw new DomainError('conflict', `There is a property "${key}" already.`)
        if (same !== undefined) {
          throw new DomainError(
            'conflict',
            `The property "${key}" was deleted, and its values are still being taken from people: try again in some minutes.`,
          )
        }
        if (rows.length >= propertyLimits.properties) {
          throw new DomainError(
            'conflict',
            `The account has ${propertyLimits.properties} properties, which is the limit; one that was deleted counts until its values are taken from people. Delete one first.`,
          )
        }
        return toProperty(await insertProperty(trx, { accountId, key, type, fallback, at: clock.now() }))
      })
    },
    async list(handle, accountId) {
      const rows = await selectProperties(handle, accountId)
      return rows.filter((row) => row.deleted_at === null).map(toProperty)
    },
    async update(handle, accountId, key, patch) {
      return inTransaction(handle, async (trx) => {
        const before = await lockProperty(trx, accountId, key)
        if (before === undefined) throw noProperty(key)
        const { fallback = before.fallback } = patch
        assertFallback(before.type, fallback)
        if (fallback === before.fallback) return toProperty(before)
        return toProperty(await updateProperty(trx, { accountId, key, fallback, at: clock.now() }))
      })
    },
    async delete(handle, { accountId, author }, key) {
      await inTransaction(handle, async (trx) => {
        const at = clock.now()
        if (!(await markPropertyDeleted(trx, accountId, key, at))) throw noProperty(key)
        const target = { type: 'contact_property', id: key, name: key } as const
        await record(trx, { accountId, at, author, action: 'contact_property.deleted', target })
      })
      // Of a small account all values are gone now, and the key can be declared again.
      if (!handle.isTransaction) await clearNextValues(handle as Db, { account_id: accountId, key })
    },
  }
}

/** Deleted properties that one call deals with, and statements for each: 200,000 people. */
const clearsAtMost = { properties: 100, statements: 100 }

/**
 * Takes the values of deleted properties from people, in small transactions. Call it every minute. Several processes
 * may do it at the same time.
 */
export async function clearDeletedProperties({ db }: { db: Db }): Promise<void> {
  for (const property of await selectDeletedProperties(db, clearsAtMost.properties)) {
    for (let done = 0; done < clearsAtMost.statements && (await clearNextValues(db, property)); done++);
  }
}

function assertFallback(type: PropertyRow['type'], fallback: PropertyRow['fallback']): void {
  const fault = faultOfValue(type, fallback)
  if (fault !== null) throw brokenRule('body.fallback', fault)
}

function noProperty(key: string): DomainError {
  return new DomainError('not_found', `There is no contact property "${key}" in this account.`)
}

function toProperty(row: PropertyRow): ContactProperty {
  return {
    key: row.key,
    type: row.type,
    fallback: row.fallback,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
