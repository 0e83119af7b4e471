/** Token of a session of the development mode, so that the printed lines work as they are. */
export async function developmentSession(
  url: string,
  login: { readonly host_token?: string } = {},
): Promise<string> {
  const answer = await fetch(`${url}/auth/test-login`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ username: "dev", role: "admin", ...login }),
  });
  if (!answer.ok) throw new Error(`The development login answered ${answer.status}`);
  const { session_token: token } = (await answer.json()) as { session_token: string };
  return token;
}
