import { Button } from '@mantine/core'
import { IconFilter } from '@tabler/icons-react'
import { type ReactNode, useId, useState } from 'react'

/** The filters of a list. On a phone they are behind a button, so that the list is in sight. */
export function Filters({ isSet, children }: { isSet: boolean; children: ReactNode }) {
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  return (
    <search>
      <Button
        className="filters-button"
        size="xs"
        variant="default"
        leftSection={<IconFilter size={14} aria-hidden />}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        {isSet ? 'Filters (set)' : 'Filters'}
      </Button>
      <div id={id} className="filters" data-open={isOpen}>
        {children}
      </div>
    </search>
  )
}
