import { Confirm } from './confirm.tsx'

type Props = {
  /** The changes that would be lost, as the subject of a sentence. */
  what: string
  onLeave: () => void
  onStay: () => void
}

/** Asks before a screen is left whose changes are not saved. */
export function LeaveUnsaved({ what, onLeave, onStay }: Props) {
  return (
    <Confirm
      title="Leave without saving?"
      action="Leave without saving"
      isRunning={false}
      error={null}
      onConfirm={onLeave}
      onClose={onStay}
    >
      {what} were not saved, and are lost when you leave.
    </Confirm>
  )
}
