/** Text that does harm where it is obeyed instead of shown. `\u0000` is refused everywhere: it cannot be stored. */
export const hostileTexts: Readonly<Record<string, string>> = {
  'control characters': '\u0001\u0008\t\r\nnext line\u000b\u001a\u007f',
  'terminal escapes':
    '\u001b[2J\u001b[31mred\u001b]0;title\u0007\u001b]8;;http://evil.test\u001b\\link\u001b]8;;\u001b\\',
  'eight-bit terminal escapes': '\u009b2J\u009d0;title\u009c\u0085next line',
  'line separators': 'one\u2028two\u2029three',
  'turns of direction': '\u202egnp.exe\u2066\u202a\u200f',
  HTML: `</script><script>document.title='owned'</script><img src=x onerror="document.title='owned'">"'&<!--`,
  'templates and formats': '{{7*7}}%s%n%p<%= 7*7 %>#{7*7}',
  'a log line of its own': '"}\n{"level":"info","msg":"forged"}',
}

/** Characters that must not appear as they are in a log, or in the output of a command. */
export const unprintable = /[^\P{Cc}\n]|[\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u
