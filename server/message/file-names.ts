const lineLength = 76
/** Maximum characters of the fallback name for programs without RFC 2231. It must fit on one line. */
const maxFallbackLength = 60
/** Maximum characters of a file extension, such as `.docx`, that is kept when the name is cut. */
const maxEndingLength = 10

/**
 * Returns a file name as header parameters, one per line: `filename` of Content-Disposition or `name` of Content-Type.
 * A name beyond plain ASCII is percent-encoded, split into continuations if long, and followed by an ASCII fallback:
 * parsers that know both forms take the first. Encoded words (RFC 2047) are not allowed inside quotes.
 *
 * Source: RFC 2231 §3 and §4, RFC 2047 §5 (3), RFC 2183 §2.3.
 */
export function fileNameParameters(parameter: 'filename' | 'name', filename: string): string[] {
  // A name that looks like an encoded word would be shown decoded.
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

/** Encodes all characters except those that RFC 2231 §7 allows and that have no special meaning elsewhere. */
function percentEncoded(character: string): string {
  return encodeURIComponent(character).replace(
    /[!'()*~]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** Returns an ASCII fallback: letters without accents, and an underscore for every other character. */
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
