import { Anchor, Button, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Centered } from './centered.tsx'
import { useSignOut } from './sign-out.ts'
import { useSession } from './use-session.ts'

export function NoAccount() {
  const session = useSession()
  const signOut = useSignOut()
  return (
    <Centered>
      <Title order={1}>You are in no account</Title>
      <Text>You are signed in, but a member of no account any more. Ask an owner of the account to invite you.</Text>
      {session?.user.isOperator && (
        <Anchor component={Link} to="/operator/accounts">
          All accounts of the service
        </Anchor>
      )}
      <Button variant="default" onClick={signOut}>
        Sign out
      </Button>
    </Centered>
  )
}
