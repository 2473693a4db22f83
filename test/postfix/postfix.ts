import { chmod, mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../scripts/support/free-port.ts'
import { postfixProgram, runAsRoot } from '../../scripts/support/postfix.ts'

/** A Postfix of its own: of that of the machine nothing but the programs is used, and nothing is changed. */
export type Postfix = AsyncDisposable & {
  /** Takes messages from this machine, to any address. */
  port: number
  /** The messages in its one mailbox, for whatever goes to `virtual:`. */
  mailbox(): Promise<string[]>
  /** Returns its log. */
  log(): Promise<string>
}

export type PostfixOptions = {
  /** The transports of messages to an address, or to all addresses of a domain: see transport(5). */
  transports: Readonly<Record<string, string>>
  /** The name server that the transport `lookup:` asks. */
  nameServer: string
  /** Milliseconds until it tries again, and as long until it tells that a message is late. */
  retryMs: number
}

type Directories = Readonly<Record<'config' | 'queue' | 'data' | 'mail', string>>

/** Who gets the messages: whoever runs the test, or, since Postfix delivers nothing as root, the user that owns nothing. */
const reader = process.getuid?.() || 65_534

/** Starts Postfix in a directory of its own, on a free port of loopback. Disposing stops it. */
export async function startPostfix({ transports, nameServer, retryMs }: PostfixOptions): Promise<Postfix> {
  await using starting = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'postern-postfix-'))
  starting.defer(async () => void (await runAsRoot('rm', ['-rf', '--', directory])))
  // Its processes are of several users.
  await chmod(directory, 0o755)
  const within = (name: string) => join(directory, name)
  const directories = { config: within('config'), queue: within('queue'), data: within('data'), mail: within('mail') }
  for (const path of Object.values(directories)) await mkdir(path)
  const port = await freePort()
  await writeFile(join(directories.config, 'main.cf'), linesOf(settingsOf(directories, retryMs), ' = '))
  await writeFile(join(directories.config, 'master.cf'), masterFile(port))
  await writeFile(join(directories.config, 'transport'), linesOf(transports, ' '))
  // The root of what runs in a chroot.
  await mkdir(join(directories.queue, 'etc'))
  await writeFile(join(directories.queue, 'etc', 'resolv.conf'), `nameserver ${nameServer}\n`)
  await runAsRoot('chown', ['-R', 'root:root', directories.queue])
  await runAsRoot('chown', ['postfix:', directories.data])
  await runAsRoot('chown', [String(reader), directories.mail])

  const log = () =>
    runAsRoot('cat', [join(directories.data, 'log')]).then(
      ({ stdout }) => stdout,
      () => '',
    )
  const command = (name: string) => runAsRoot(postfixProgram, ['-c', directories.config, name])
  try {
    await command('start')
  } catch (error) {
    throw new Error(`Postfix did not start:\n${await log()}`, { cause: error })
  }
  starting.defer(async () => void (await command('stop')))
  const running = starting.move()

  return {
    port,
    async mailbox() {
      const inbox = join(directories.mail, 'inbox', 'new')
      const names = await readdir(inbox).catch(() => [])
      return Promise.all(names.map((name) => readFile(join(inbox, name), 'utf8')))
    },
    log,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

function settingsOf({ config, queue, data, mail }: Directories, retryMs: number): Record<string, string> {
  return {
    compatibility_level: '3.6',
    queue_directory: queue,
    data_directory: data,
    maillog_file: join(data, 'log'),
    maillog_file_prefixes: data,
    myhostname: 'relay.test',
    mydestination: '',
    inet_interfaces: '127.0.0.1',
    inet_protocols: 'ipv4',
    mynetworks: '127.0.0.0/8',
    smtpd_relay_restrictions: 'permit_mynetworks, reject',
    smtpd_peername_lookup: 'no',
    disable_dns_lookups: 'yes',
    alias_maps: '',
    notify_classes: '',
    transport_maps: `texthash:${join(config, 'transport')}`,
    // Nobody else is asked for what the map does not name.
    default_transport: 'error:5.4.4 There is no way to this domain',
    virtual_mailbox_domains: '',
    virtual_mailbox_base: mail,
    virtual_mailbox_maps: 'static:inbox/',
    virtual_uid_maps: `static:${reader}`,
    virtual_gid_maps: `static:${reader}`,
    queue_run_delay: `${retryMs / 1000}s`,
    minimal_backoff_time: `${retryMs / 1000}s`,
    maximal_backoff_time: `${retryMs / 1000}s`,
    delay_warning_time: `${retryMs / 1000}s`,
  }
}

/** The processes that take, keep and send messages and write notifications; none in a chroot but the one that asks the DNS. See master(5). */
function masterFile(port: number): string {
  return `
127.0.0.1:${port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
lookup unix - - y - - smtp -o disable_dns_lookups=no
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
showq unix n - n - - showq
postlog unix-dgram n - n - 1 postlogd
`
}

function linesOf(entries: Readonly<Record<string, string>>, between: string): string {
  return Object.entries(entries)
    .map(([name, value]) => `${name}${between}${value}\n`)
    .join('')
}
