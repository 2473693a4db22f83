/** A text of the API with its code, which stands between backticks. */
export function Marked({ children }: { children: string }) {
  return children.split('`').map((part, index) => {
    const key = `${index} ${part}`
    return index % 2 === 0 ? part : <code key={key}>{part}</code>
  })
}
