/** `contact.created` → `ContactCreated`, `not_found` → `NotFound`. */
export function pascalCase(name: string): string {
  return name.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
