import { sql } from 'kysely'
import type { Brand, UpdateBrand } from '../../contract/brand.ts'
import type { Handle } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'

/** Use cases for how pages for the readers of an account look. */
export type BrandService = {
  get(handle: Handle, accountId: string): Promise<Brand>
  /** Changes the fields given. */
  update(handle: Handle, accountId: string, patch: UpdateBrand): Promise<Brand>
}

const none: Brand = { name: null, accentColor: null, text: null }

export function createBrandService({ clock }: { clock: Clock }): BrandService {
  return {
    get: async (handle, accountId) => (await findBrand(handle, accountId)) ?? none,
    async update(handle, accountId, patch) {
      // In one statement, so that two changes at once both last.
      const { rows } = await sql<Brand>`
        INSERT INTO account_brands AS b (account_id, name, accent_color, text, updated_at)
        VALUES (${accountId}, ${patch.name ?? null}, ${patch.accentColor ?? null}, ${patch.text ?? null}, ${clock.now()})
        ON CONFLICT (account_id) DO UPDATE SET
          name = CASE WHEN ${patch.name !== undefined}::bool THEN excluded.name ELSE b.name END,
          accent_color =
            CASE WHEN ${patch.accentColor !== undefined}::bool THEN excluded.accent_color ELSE b.accent_color END,
          text = CASE WHEN ${patch.text !== undefined}::bool THEN excluded.text ELSE b.text END,
          updated_at = excluded.updated_at
        RETURNING name, accent_color AS "accentColor", text
      `.execute(handle)
      return rows[0] ?? none
    },
  }
}

/** Returns the brand of an account, with nulls where nothing was said. Returns null when the account is gone. */
export async function findBrand(handle: Handle, accountId: string): Promise<Brand | null> {
  const row = await handle
    .selectFrom('accounts')
    .leftJoin('account_brands', 'account_brands.account_id', 'accounts.id')
    .select(['account_brands.name', 'account_brands.accent_color as accentColor', 'account_brands.text'])
    .where('accounts.id', '=', accountId)
    .executeTakeFirst()
  return row ?? null
}
