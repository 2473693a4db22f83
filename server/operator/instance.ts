import { auditLogDays } from '../../contract/audit-log.ts'
import {
  type Instance,
  mostDestinations,
  mostTables,
  processSilenceSeconds,
  type RunningProcess,
  type SlowDestination,
  type Storage,
} from '../../contract/operator.ts'
import { requestLogDays } from '../../contract/request-logs.ts'
import { hourlyDays } from '../../contract/statistics.ts'
import type { Handle } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { RegisteredProcess } from '../processes/register.ts'
import { databaseSize, databaseVersions, tableSizes } from './database-facts.ts'

/** How the service is doing, for its operator. */
export type InstanceService = {
  health(handle: Handle): Promise<Instance>
  storage(handle: Handle): Promise<Storage>
}

type Depth = Instance['queues']['deliveries']

export type InstanceOptions = {
  clock: Clock
  /** The version of the service. */
  version: string
  /** How long events, deliveries and emails are kept. Milliseconds. */
  retentionMs: number
  /** How long statistics by day are kept. Milliseconds. */
  statisticsMs: number
  processes: (handle: Handle) => Promise<RegisteredProcess[]>
  /** Returns the number of events whose deliveries are not written yet, up to `most`. */
  countOutbox: (handle: Handle, most: number) => Promise<number>
  deliveries: () => Promise<Depth>
  emails: () => Promise<Depth>
  /** Returns the age of the oldest event with a delivery to come. Seconds; 0: there is none. */
  undeliveredSeconds: (handle: Handle) => Promise<number>
  /** Returns URLs with deliveries that are due, the longest due first. */
  destinations: (handle: Handle, limit: number) => Promise<(Omit<SlowDestination, 'dueSince'> & { dueSince: Date })[]>
}

const dayMs = 24 * 3_600_000
/** Events in the outbox are counted up to this number. */
const mostInOutbox = 10_000

export function createInstanceService(options: InstanceOptions): InstanceService {
  const { clock, version } = options

  return {
    async health(handle) {
      const processes = await options.processes(handle)
      const outbox = await options.countOutbox(handle, mostInOutbox)
      const destinations = await options.destinations(handle, mostDestinations)
      const [deliveries, emails] = await Promise.all([options.deliveries(), options.emails()])
      return {
        at: clock.now().toISOString(),
        versions: { postern: version, node: process.version, ...(await databaseVersions(handle)) },
        processes: processes.map(toProcess),
        queues: { outbox, deliveries, emails },
        undeliveredSeconds: Math.round(await options.undeliveredSeconds(handle)),
        destinations: destinations.map(({ dueSince, ...rest }) => ({ ...rest, dueSince: dueSince.toISOString() })),
      }
    },
    async storage(handle) {
      const days = (ms: number) => ms / dayMs
      return {
        databaseBytes: await databaseSize(handle),
        tables: await tableSizes(handle, mostTables),
        retention: [
          {
            what: 'events, deliveries and emails',
            days: days(options.retentionMs),
            setting: 'RETENTION_DAYS',
          },
          { what: 'statistics by day', days: days(options.statisticsMs), setting: 'STATISTICS_DAYS' },
          { what: 'statistics by hour', days: Math.min(hourlyDays, days(options.statisticsMs)), setting: null },
          { what: 'audit log', days: auditLogDays, setting: null },
          { what: 'request logs', days: requestLogDays, setting: null },
        ],
      }
    },
  }
}

function toProcess(row: RegisteredProcess): RunningProcess {
  return {
    host: row.host,
    pid: row.pid,
    roles: row.roles,
    version: row.version,
    node: row.node,
    startedAt: row.started_at.toISOString(),
    lastSeenAt: row.seen_at.toISOString(),
    isAlive: row.silent_seconds < processSilenceSeconds,
  }
}
