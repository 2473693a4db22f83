import '../../styles/preferences-look.css'
import { readableOn } from '../../../../contract/readable-color.ts'
import { useGet } from '../../api/hooks.ts'
import { unread } from '../../components/unread.tsx'

/** Topics that are shown. */
const shown = 5
const defaultAccent = '#222222'
const examples = [{ id: 'example', name: 'Product news', description: 'Once a month.', default: 'opt_out' }] as const

type Props = { name: string; accentColor: string; text: string }

/** The page behind the link to unsubscribe, as a reader who has chosen nothing sees it. Nothing on it can be pressed. */
export function PreferencesLook({ name, accentColor, text }: Props) {
  const query = useGet('GET /v1/topics', { query: { limit: shown } })
  const { data } = query
  const isColor = /^#[0-9a-fA-F]{6}$/.test(accentColor)
  const background = isColor ? accentColor : defaultAccent
  const button = { background, color: readableOn(background) }
  const topics = data === undefined || data.data.length === 0 ? examples : data.data
  return (
    <>
      {unread(query, 'Your topics')}
      <div className="preferences-look" role="img" aria-label="The page of preferences as a reader sees it">
        {name !== '' && (
          <p>
            <strong>{name}</strong>
          </p>
        )}
        <p className="look-title">Unsubscribe</p>
        <p>Press the button to get no more of these emails.</p>
        <p>
          <span className="look-button" style={button}>
            Unsubscribe
          </span>
        </p>
        <p className="look-heading">Your preferences</p>
        {text !== '' && <p className="look-text">{text}</p>}
        <div className="look-topics">
          {topics.map(({ id, name: topic, description, default: unchosen }) => (
            <p key={id}>
              <span className="look-box" style={unchosen === 'opt_out' ? button : {}}>
                {unchosen === 'opt_out' && '✓'}
              </span>{' '}
              {topic}
              {description !== null && <small>{description}</small>}
            </p>
          ))}
        </div>
        <p>
          First name
          <span className="look-input">Ada</span>
        </p>
        <p>
          Last name
          <span className="look-input">Lovelace</span>
        </p>
        <p>
          <span className="look-button" style={button}>
            Save
          </span>
        </p>
        <p>
          <span className="look-button">Unsubscribe from everything</span>
        </p>
      </div>
    </>
  )
}
