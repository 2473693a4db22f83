import { Modal, type ModalProps } from '@mantine/core'
import { useEffect, useState } from 'react'

type Props = Omit<ModalProps, 'opened'>

/** A dialog that is open as long as it is rendered. The focus returns to what opened it, or to the button of its menu. */
export function Dialog(props: Props) {
  const [opener] = useState(findOpener)
  useEffect(() => {
    return () => {
      // After the trap of the dialog is gone.
      setTimeout(() => opener?.focus({ preventScroll: true }))
    }
  }, [opener])
  // Its head is no banner of the page: on a phone there is one.
  return <Modal {...props} opened returnFocus={false} attributes={{ header: { role: 'presentation' } }} />
}

function findOpener(): HTMLElement | null {
  const { activeElement } = document
  const labelId = activeElement?.closest('[role="menu"]')?.getAttribute('aria-labelledby')
  const element = labelId == null ? activeElement : document.getElementById(labelId)
  return element instanceof HTMLElement && element !== document.body ? element : null
}
