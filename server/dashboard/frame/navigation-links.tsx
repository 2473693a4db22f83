import { Link } from '@tanstack/react-router'
import { useScope } from '../api/scope.tsx'
import type { NavigationGroup } from './navigation.ts'

type Props = { groups: readonly NavigationGroup[]; onFollow: () => void }

/** @param props.onFollow Called when a link is followed: on a phone the navigation then closes. */
export function NavigationLinks({ groups: all, onFollow }: Props) {
  const { can, path } = useScope()
  const groups = all
    .map(({ heading, items }) => ({
      heading,
      items: items.filter(
        ({ permission, isThere }) => (permission === null || can(permission)) && isThere?.() !== false,
      ),
    }))
    .filter(({ items }) => items.length > 0)
  return (
    <nav aria-label="Screens">
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
