/** The name of a user's record whose login another user has now: no code host gives names with a tilde. */
export function formerLogin({ login, id }: { readonly login: string; readonly id: string }): string {
  return `${login}~${id.slice(-8)}`;
}
