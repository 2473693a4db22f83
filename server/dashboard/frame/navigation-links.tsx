import { Link, useLocation } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { useScope } from '../api/scope.tsx'
import type { NavigationGroup } from './navigation.ts'

type Props = { groups: readonly NavigationGroup[]; onFollow: () => void }

/** @param props.onFollow Called when a link is followed: on a phone the navigation then closes. */
export function NavigationLinks({ groups: all, onFollow }: Props) {
  const { can, path } = useScope()
  const { pathname } = useLocation()
  const nav = useRef<HTMLElement>(null)
  // On a low screen the last ones are out of sight, also that of the screen that is shown.
  // biome-ignore lint/correctness/useExhaustiveDependencies: it runs again on another screen
  useEffect(() => {
    nav.current?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: 'nearest' })
  }, [pathname])
  const groups = all
    .map(({ heading, items }) => ({
      heading,
      items: items.filter(
        ({ permission, isThere }) => (permission === null || can(permission)) && isThere?.() !== false,
      ),
    }))
    .filter(({ items }) => items.length > 0)
  return (
    <nav aria-label="Screens" ref={nav}>
      {groups.map(({ heading, items }) => (
        <div key={heading ?? ''} className="navigation-group">
          {heading !== null && <p className="navigation-heading">{heading}</p>}
          <ul>
            {items.map(({ label, path: screen, icon: Icon }) => (
              <li key={screen}>
                <Link
                  to={path(screen)}
                  className="navigation-link"
                  activeProps={{ 'aria-current': 'page' }}
                  onClick={onFollow}
                >
                  <Icon size={17} stroke={1.6} aria-hidden />
                  {label}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  )
}
