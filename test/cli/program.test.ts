import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { buildProgram } from '../../server/cli/program.ts'

/** Runs a command line that ends before its command does anything. Returns its output and exit code. */
async function toldOf(args: readonly string[]): Promise<{ out: string; err: string; exitCode: number }> {
  const told = { out: '', err: '', exitCode: 0 }
  const program = buildProgram()
  for (const command of commandsOf(program)) {
    command.configureOutput({
      writeOut: (text) => {
        told.out += text
      },
      writeErr: (text) => {
        told.err += text
      },
    })
  }
  await program.parseAsync(args, { from: 'user' }).catch((error) => {
    told.exitCode = error.exitCode
  })
  return told
}

function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)]
}

function pathOf(command: Command): string[] {
  return command.parent === null ? [] : [...pathOf(command.parent), command.name()]
}

describe('the command line', () => {
  const paths = commandsOf(buildProgram()).map(pathOf)

  test('the command line has the commands of the manual', () => {
    expect(paths.map((path) => path.join(' '))).toEqual([
      '',
      'keys',
      'keys create',
      'keys list',
      'keys revoke',
      'keys delete',
      'accounts',
      'accounts create',
      'accounts list',
      'users',
      'users invite',
      'users list',
      'users reset-password',
      'users operator',
      'migrate',
    ])
  })

  test.each(paths.map((path) => [path]))('%j has --help', async (path) => {
    const { out, err, exitCode } = await toldOf([...path, '--help'])
    expect({ err, exitCode }).toEqual({ err: '', exitCode: 0 })
    expect(out).toContain(`Usage: ${['postern', ...path].join(' ')}`)
  })

  test.each([
    [['keys', 'create'], `required option '--mode <mode>' not specified`],
    [['keys', 'create', '--mode', 'test', '--permission', 'all'], 'It must be one of: full_access, '],
    [['keys', 'create', '--mode', 'test', '--name', ' '], 'It must be 1 to 200 characters on one line.'],
    [['keys', 'create', '--mode', 'test', '--expires-at', 'tomorrow'], 'It must be a time that lies ahead'],
    [['keys', 'create', '--mode', 'test', '--expires-at', '2020-01-01T00:00:00Z'], 'It must be a time that lies ahead'],
    [['keys', 'create', '--mode', 'test', '--allow', '10.0.0.1', '10.0.0.1/8'], 'the range begins at 10.0.0.0/8'],
    [['keys', 'create', '--mode', 'test', '--allow', 'example.com'], 'It must be an IP address such as'],
    [['keys', 'revoke'], `missing required argument 'id'`],
    [['keys', 'delete'], `missing required argument 'id'`],
    [['keys', 'list', 'everything'], 'too many arguments'],
    [['accounts', 'create'], `required option '--plan <plan>' not specified`],
    [['mail'], `unknown command 'mail'`],
    [['migrate', '--now'], `unknown option '--now'`],
  ])('%j is refused in one line', async (args, reason) => {
    const { out, err, exitCode } = await toldOf(args)
    expect({ out, exitCode }).toEqual({ out: '', exitCode: 1 })
    expect(err).toMatch(/^postern: .*\n$/)
    expect(err).toContain(reason)
  })
})
