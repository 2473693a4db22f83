import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { lapseClaims } from './support/claims.ts'
import { rounds, timeLimit } from './support/rounds.ts'
import { setStage } from './support/stage.ts'

/** A process is killed this long after it is ready, at most. Milliseconds. */
const longestLifeMs = 600

const kills = rounds({ short: 3, long: 100 })

test(`nothing is lost when the service is killed ${kills} times at random moments`, {
  timeout: timeLimit(kills),
}, async () => {
  await using database = await createTestDatabase()
  await using stage = await setStage(database)
  await using load = stage.startLoad()
  for (let kill = 1; kill <= kills; kill++) {
    await delay(Math.random() * longestLifeMs)
    await stage.kill()
    if (kill % 5 === 0) await lapseClaims(database)
    await stage.restart()
  }
  await load.acknowledged(20)
  await load.stop()
  await stage.kill()
  await lapseClaims(database)
  await stage.restart()
  expect(await stage.verdict()).toEqual([])
})
