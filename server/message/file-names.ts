const lineLength = 76
/** Characters of the name that programs without RFC 2231 show: it stands on one line. */
const maxFallbackLength = 60
/** Of a name's ending, such as `.docx`, that is kept where the name is cut. */
const maxEndingLength = 10

/**
 * The name of a file as parameters of a header field, each for a line of its own: `filename` of
 * Content-Disposition or `name` of Content-Type. What is not plain ASCII stands percent-encoded, in continuations
 * where it is long, and before a fallback in ASCII: parsers that know both forms then take the first. RFC 2047 has
 * no place here, since its words must not stand within quotes.
 *
 * Source: RFC 2231 §3 and §4, RFC 2047 §5 (3), RFC 2183 §2.3.
 */
export function fileNameParameters(parameter: 'filename' | 'name', filename: string): string[] {
  // What looks like an encoded word would be shown as what it stands for.
  if (/^[ -~]*$/.test(filename) && !filename.includes('=?')) return [`${parameter}=${quoted(filename)}`]
  return [...extended(parameter, filename), `${parameter}=${quoted(fallbackOf(filename))}`]
}

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}

function extended(parameter: string, filename: string): string[] {
  const characters = [...filename.toWellFormed()].map(percentEncoded)
  const whole = `${parameter}*=utf-8''${characters.join('')}`
  if (whole.length < lineLength) return [whole]
  const pieces: string[] = []
  let piece = `${parameter}*0*=utf-8''`
  for (const character of characters) {
    if (piece.length + character.length >= lineLength) {
      pieces.push(piece)
      piece = `${parameter}*${pieces.length}*=`
    }
    piece += character
  }
  return [...pieces, piece]
}

/** All but the characters that RFC 2231 §7 has in an extended value and that mean nothing else anywhere. */
function percentEncoded(character: string): string {
  return encodeURIComponent(character).replace(
    /[!'()*~]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** Letters without their accents, and an underscore for what is not ASCII. */
function fallbackOf(filename: string): string {
  const plain = [...filename.normalize('NFKD').replace(/\p{M}/gu, '')]
    .map((character) => (/^[ -~]$/.test(character) ? character : '_'))
    .join('')
    .replaceAll('=?', '__')
  if (plain.length <= maxFallbackLength) return plain
  const dot = plain.lastIndexOf('.')
  const ending = dot === -1 || plain.length - dot > maxEndingLength ? '' : plain.slice(dot)
  return plain.slice(0, maxFallbackLength - ending.length) + ending
}
