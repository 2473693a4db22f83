import type { StoredMessage } from './stored-messages.ts'

/** Runs in a browser that takes it for HTML, and renames the page. */
export const script = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

export const mildHtml = '<p style="color: red">Hello</p>'

/** HTML that must neither run nor load anything in the preview of an email. */
export const hostileHtml = `<body style="color: rgb(1, 2, 3)" onload="top.document.title='owned'">${script}
  <style>@import 'https://tracker.example/a.css'; p { background: url(https://tracker.example/b.png) } h2 { color: rgb(7, 8, 9) }</style><h2>Shop</h2>
  <link rel="stylesheet" href="https://tracker.example/c.css"><base href="https://tracker.example/">
  <meta http-equiv="refresh" content="0; url=https://tracker.example/d">
  <img src="https://tracker.example/e.gif" srcset="https://tracker.example/f.gif 2x">
  <iframe src="https://tracker.example/g"></iframe><form action="https://tracker.example/h"><button>Send</button></form>
  <h1 style="color: rgb(4, 5, 6); x: }</style><script>document.title='owned'</script>">Hello</h1><a href="https://tracker.example/i" target="_top">Away</a></body>`

/** A message with script in each field that is shown. */
export const hostileMessage = (html: string) =>
  [
    `From: "${script.replaceAll('"', "'")}" <shop@example.com>`,
    `Subject: ${script}`,
    `X-Header: ${script}`,
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/html',
    '',
    html,
    '--b',
    'Content-Type: text/html; name="<img src=x onerror=alert()>.html"',
    'Content-Disposition: attachment; filename="<img src=x onerror=alert()>.html"',
    '',
    script,
    '--b--',
    '',
  ].join('\r\n')

/** The same as a captured or inbound message, with script in its envelope too. */
export const hostileStored = (accountId: string, html: string): StoredMessage => ({
  accountId,
  recipients: [script],
  mailFrom: script,
  content: hostileMessage(html),
})
