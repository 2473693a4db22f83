import { Button, Text, Title } from '@mantine/core'
import { Centered } from './centered.tsx'
import { useSignOut } from './sign-out.ts'

export function NoAccount() {
  const signOut = useSignOut()
  return (
    <Centered>
      <Title order={1}>You are in no account</Title>
      <Text>You are signed in, but a member of no account any more. Ask an owner of the account to invite you.</Text>
      <Button variant="default" onClick={signOut}>
        Sign out
      </Button>
    </Centered>
  )
}
