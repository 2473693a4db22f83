import go from '../../receivers/receiver.go?raw'
import node from '../../receivers/receiver.mjs?raw'
import php from '../../receivers/receiver.php?raw'
import python from '../../receivers/receiver.py?raw'
import ruby from '../../receivers/receiver.rb?raw'

type Receiver = { language: string; file: string; code: string; run: (port: number) => string }

/** The receivers of the guide (docs/guides/receiving-webhooks.md), which tests run as they stand. */
export const receivers: readonly Receiver[] = [
  { language: 'Node', file: 'receiver.mjs', code: node, run: () => 'node receiver.mjs' },
  { language: 'Python', file: 'receiver.py', code: python, run: () => 'python3 receiver.py' },
  { language: 'Go', file: 'receiver.go', code: go, run: () => 'go run receiver.go' },
  { language: 'PHP', file: 'receiver.php', code: php, run: (port) => `php -S 127.0.0.1:${port} receiver.php` },
  { language: 'Ruby', file: 'receiver.rb', code: ruby, run: () => 'ruby receiver.rb' },
]
