import { sql } from 'kysely'
import type { Trx } from '../database/connection.ts'
import type { EmailFigure } from '../statistics/figures.ts'
import type { RecipientFact } from './recipient-facts.ts'

/*
 * Machines open messages and follow links before people do. A/B tests compare people: so it is noted which recipients of
 * emails that test a variant opened it or clicked themselves.
 */

/** `isNew`: it is to be written. */
export type PersonVisits = { opened: boolean; clicked: boolean; isNew: boolean }

/** Notes a visit of a person. Returns what a fact counts for a variant: its figures, with people who opened and clicked. */
export function countForVariant(
  visits: PersonVisits,
  fact: RecipientFact,
  figures: readonly EmailFigure[],
): EmailFigure[] {
  const others = figures.filter((figure) => figure !== 'opened' && figure !== 'clicked')
  if ((fact.kind !== 'opened' && fact.kind !== 'clicked') || fact.automated || visits[fact.kind]) return others
  visits[fact.kind] = true
  visits.isNew = true
  return [fact.kind, ...others]
}

type Visited = { emailId: string; position: number; personVisits: PersonVisits }

/** Stores the visits that are new. A statement of its own: most batches have none. */
export async function writePersonVisits(trx: Trx, recipients: readonly Visited[]): Promise<void> {
  const changed = recipients.filter(({ personVisits }) => personVisits.isNew)
  if (changed.length === 0) return
  const ids = changed.map(({ emailId }) => emailId)
  await sql`
    UPDATE email_recipients r SET opened_by_person = i.opened, clicked_by_person = i.clicked
    FROM unnest(
      ${ids}::text[],
      ${changed.map(({ position }) => position)}::int[],
      ${changed.map(({ personVisits }) => personVisits.opened)}::bool[],
      ${changed.map(({ personVisits }) => personVisits.clicked)}::bool[]
    ) AS i (email_id, position, opened, clicked)
    -- Repeated so that the planner uses an index, however old its statistics are.
    WHERE r.email_id = i.email_id AND r.position = i.position AND r.email_id = ANY(${[...new Set(ids)]}::text[])
  `.execute(trx)
}
