/** One thing a page tells its reader to do, or says has happened. */
export type Step =
  /** Prints `output`; nothing when that is empty. */
  | { kind: 'command'; command: string; output: string }
  | { kind: 'start receiver'; secret: string }
  | { kind: 'stop receiver' }
  /** The receiver has printed this, and nothing else. */
  | { kind: 'printed'; output: string }

const steps = /^```(?<language>\w*)\n(?<content>[\s\S]*?)^```$|Stop the receiver\s+with Ctrl-C/gm

/** The steps of a text: its `console` and `receiver` blocks, and the sentence that stops the receiver. */
export function stepsOf(text: string): Step[] {
  return [...text.matchAll(steps)].flatMap(({ groups }): Step[] => {
    const { language, content = '' } = groups ?? {}
    if (language === undefined) return [{ kind: 'stop receiver' }]
    if (language === 'console') return commandsOf(content)
    return language === 'receiver' ? [{ kind: 'printed', output: content.trimEnd() }] : []
  })
}

function commandsOf(content: string): Step[] {
  return content.split(/^(?=\$ )/m).map((entry) => {
    const [line = '', ...output] = entry.trimEnd().split('\n')
    const command = line.slice(2)
    const secret = /^WEBHOOK_SECRET=(\S+) node receiver\.mjs$/.exec(command)?.[1]
    return secret === undefined
      ? { kind: 'command', command, output: output.join('\n') }
      : { kind: 'start receiver', secret }
  })
}

/** Values that differ in every run. Those in `naming` are names: each must name the same thing wherever it stands. */
const naming = [
  /(?<=#token=)[\w-]{43}/,
  /postern_(?:test|live)_\w{43}/,
  /whsec_[A-Za-z0-9+/]{43}=/,
  /127\.0\.0\.1:\d+/,
  /(?:wh|dlv|evt|aud|sub|acc|key|dom|email|cap|imp|seg|cmp)_[0-9a-z]{26}/,
  /(?<=demo-)[0-9a-f]{8}/,
]
const measured = [
  /(?<=")[0-9a-z]{26}(?=")/,
  /req_[0-9a-z]{26}/,
  /postern_(?:test|live)_…\w{4}/,
  /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/,
  /(?<="(?:durationMs|responseTime)": )[\d.]+/,
  /\d+(?= ms: )/,
  /(?<=webhook-timestamp +)\d+/,
  /(?<="webhook-timestamp": ")\d+/,
  /(?<=x-service-signature +)[0-9a-f]{64}/,
  /v1,[A-Za-z0-9+/]{43}=/,
  /(?<=ada-)[0-9a-f]{8}/,
  /(?<= b\.)[0-9a-z]{42}(?=@)/,
  /(?<=<)[0-9a-z]{26}(?=@)/,
  /(?<=s=(?:rsa|ed25519)-)[0-9a-z]{10}/,
  /\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000/,
]
const name = new RegExp(naming.map(({ source }) => source).join('|'), 'g')
const variable = new RegExp([...naming, ...measured].map(({ source }) => source).join('|'), 'g')
/** The prefix of an id or a key. The token of a link may have letters and an underscore there by chance. */
const prefix = /^(?:[a-z]+(?=_[0-9a-z]{26}$)|postern|whsec)_/

/** A text with `<…>` in place of all that is another in every run; JSON indented as on the pages. */
export function shapeOf(text: string): string {
  return indented(text)
    .replaceAll(variable, (found) => `<${prefix.exec(found)?.[0] ?? 'varies'}>`)
    .replaceAll(/[ \r]+$/gm, '')
    .trimEnd()
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** The names on the pages, mapped to those of this run. */
export type Names = {
  set(documented: string, actual: string): void
  /** A text of a page with the names of this run. */
  translate(documented: string): string
  /** Takes up the names of two texts of one shape. Throws unless each name stands for one and the same. */
  learn(documented: string, actual: string): void
}

export function createNames(): Names {
  const actualOf = new Map<string, string>()
  const documentedOf = new Map<string, string>()

  function set(documented: string, actual: string): void {
    const before = actualOf.get(documented) ?? actual
    if (before !== actual) throw new Error(`${documented} of the documents was ${before} and is now ${actual}`)
    const other = documentedOf.get(actual) ?? documented
    if (other !== documented) throw new Error(`the documents have two names for one thing, ${other} and ${documented}`)
    actualOf.set(documented, actual)
    documentedOf.set(actual, documented)
  }

  return {
    set,
    translate: (documented) => documented.replaceAll(name, (found) => actualOf.get(found) ?? found),
    learn(documented, actual) {
      const found = actual.match(name) ?? []
      for (const [index, written] of (documented.match(name) ?? []).entries()) set(written, found[index] ?? '')
    },
  }
}
