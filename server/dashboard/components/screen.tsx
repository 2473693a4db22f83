import { Anchor, Group, Title } from '@mantine/core'
import { IconArrowLeft } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef } from 'react'
import { useScope } from '../api/scope.tsx'

type Props = {
  /** Also the title of the page. */
  title: string
  /** Shown below the title. */
  subtitle?: ReactNode
  /** The one thing that is mostly done here. */
  action?: ReactNode
  /** The list that this screen shows one of. */
  parent?: { label: string; path: string }
  children: ReactNode
}

let hasShownOne = false

/** The frame of a screen: where one is, its title and what can be done. */
export function Screen({ title, subtitle, action, parent, children }: Props) {
  const { path, pageTitle } = useScope()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = pageTitle(title)
  }, [title, pageTitle])
  // So that a screen reader tells where a link has led. On the first screen the browser does that.
  useEffect(() => {
    if (hasShownOne) heading.current?.focus({ preventScroll: true })
    hasShownOne = true
  }, [])
  return (
    <>
      {parent && (
        <Anchor component={Link} to={path(parent.path)} className="parent-link">
          <IconArrowLeft size={14} aria-hidden /> {parent.label}
        </Anchor>
      )}
      <Group justify="space-between" align="flex-start" mb="lg" gap="sm" className="screen-head">
        <div className="screen-title">
          <Title order={1} ref={heading} tabIndex={-1}>
            {title}
          </Title>
          {subtitle !== undefined && <div className="subtitle">{subtitle}</div>}
        </div>
        {action}
      </Group>
      {children}
    </>
  )
}
