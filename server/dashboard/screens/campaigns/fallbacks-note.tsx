/** The values that content has where the campaign gives none. */
export function FallbacksNote({ fallbacks }: { fallbacks: Readonly<Record<string, unknown>> | null }) {
  const listed = Object.entries(fallbacks ?? {}).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  if (listed.length === 0) return null
  return <p className="dimmed">From its template, where “Values” has none: {listed.join(', ')}</p>
}
