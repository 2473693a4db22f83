/* Lists captured messages and shows one. Parts of a message are set as text, or shown in a frame without scripts. */

const keyName = 'postern-key'
/** Characters of a source that are shown. More would make the page slow. */
const sourceLimit = 1_000_000

const element = (id) => document.getElementById(id)
const views = ['html', 'text', 'source']
let cursor = null

async function ask(path) {
  const answer = await fetch(path, { headers: { Authorization: `Bearer ${sessionStorage.getItem(keyName)}` } })
  const body = await answer.json()
  if (!answer.ok) throw new Error(body.error.message)
  return body
}

/** Runs `work` and shows the message of an error on the page. */
async function attempt(work) {
  element('status').textContent = ''
  try {
    await work()
  } catch (error) {
    element('status').textContent = error.message
  }
}

function node(name, text) {
  const made = document.createElement(name)
  made.textContent = text
  return made
}

function rowOf(message) {
  const row = document.createElement('tr')
  const open = node('button', message.subject ?? '(no subject)')
  open.type = 'button'
  open.addEventListener('click', () =>
    attempt(async () => {
      show(await ask(`v1/captured-messages/${message.id}`))
      for (const other of element('rows').children) other.removeAttribute('aria-current')
      row.setAttribute('aria-current', 'true')
    }),
  )
  const subject = document.createElement('td')
  subject.append(open)
  row.append(
    node('td', new Date(message.createdAt).toLocaleString()),
    node('td', message.recipients.join(', ')),
    subject,
  )
  return row
}

async function list({ fromTheStart }) {
  const after = fromTheStart || cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
  const page = await ask(`v1/captured-messages?limit=50${after}`)
  if (fromTheStart) element('rows').replaceChildren()
  element('rows').append(...page.data.map(rowOf))
  cursor = page.nextCursor
  element('more').hidden = cursor === null
  element('list').hidden = false
  element('forget').hidden = false
  if (element('rows').children.length === 0) element('status').textContent = 'There are no messages yet.'
}

function show(message) {
  const facts = {
    From: message.from ?? '(none)',
    'Handed over for': message.recipients.join(', '),
    'Return path': message.mailFrom === '' ? '(none)' : message.mailFrom,
    Email: message.emailId ?? '(unknown)',
    Size: `${message.size.toLocaleString()} bytes`,
    ...(message.attachments.length > 0 && {
      Files: message.attachments.map((file) => `${file.filename ?? '(no name)'} (${file.size} bytes)`).join(', '),
    }),
  }
  element('subject').textContent = message.subject ?? '(no subject)'
  element('facts').replaceChildren(
    ...Object.entries(facts).flatMap(([name, fact]) => [node('dt', name), node('dd', fact)]),
  )
  element('html').srcdoc = message.html ?? ''
  element('text').textContent = message.text ?? ''
  element('source').textContent = sourceOf(message)
  const has = { html: message.html !== null, text: message.text !== null, source: true }
  for (const button of document.querySelectorAll('[data-view]')) button.disabled = !has[button.dataset.view]
  view(views.find((name) => has[name]))
  element('message').hidden = false
}

function sourceOf({ source }) {
  const bytes = Uint8Array.from(atob(source), (character) => character.charCodeAt(0))
  const text = new TextDecoder().decode(bytes.subarray(0, sourceLimit))
  return bytes.length > sourceLimit ? `${text}\n… (the rest is not shown)` : text
}

function view(chosen) {
  for (const name of views) element(name).hidden = name !== chosen
  for (const button of document.querySelectorAll('[data-view]')) {
    button.setAttribute('aria-pressed', String(button.dataset.view === chosen))
  }
}

element('access').addEventListener('submit', (event) => {
  event.preventDefault()
  sessionStorage.setItem(keyName, element('key').value.trim())
  element('key').value = ''
  void attempt(() => list({ fromTheStart: true }))
})
element('forget').addEventListener('click', () => {
  sessionStorage.removeItem(keyName)
  location.reload()
})
element('more').addEventListener('click', () => attempt(() => list({ fromTheStart: false })))
for (const button of document.querySelectorAll('[data-view]')) {
  button.addEventListener('click', () => view(button.dataset.view))
}

if (sessionStorage.getItem(keyName) !== null) void attempt(() => list({ fromTheStart: true }))
