type Props = {
  /** 1: the whole. */
  share: number
  /** Whether the whole is a limit: then the bar warns from 80 % of it on. Default: yes. */
  isLimit?: boolean
}

/** A bar as long as a share, for what also stands beside it as numbers. */
export function ShareBar({ share, isLimit = true }: Props) {
  const width = `${Math.min(100, 100 * share)}%`
  return (
    <span className="share-bar" data-tone={isLimit ? toneOf(share) : 'busy'} aria-hidden="true">
      {share > 0 && <span className="share-fill" style={{ width }} />}
    </span>
  )
}

function toneOf(share: number): 'bad' | 'warn' | 'busy' {
  if (share >= 1) return 'bad'
  return share >= 0.8 ? 'warn' : 'busy'
}
