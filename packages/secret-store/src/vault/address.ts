import { SecretStoreError } from "../errors.ts";

/** Address of a Vault server: origin and an optional path prefix, without a slash at the end. */
export interface VaultAddress {
  readonly protocol: "http:" | "https:";
  readonly origin: string;
  readonly base: string;
}

/**
 * Reads `store.address`.
 * @throws SecretStoreError `misconfigured`, without the text, which may hold a password
 */
export function parseAddress(text: string): VaultAddress {
  const url = URL.parse(text);
  if (url === null) refuse("it is not a URL");
  const { protocol, origin, pathname } = url;
  if (protocol !== "http:" && protocol !== "https:") refuse("its scheme is neither https nor http");
  if (url.username !== "" || url.password !== "") refuse("it holds a user name or password");
  if (url.search !== "" || url.hash !== "") refuse("it holds a query or a fragment");
  return { protocol, origin, base: origin + pathname.replace(/\/+$/, "") };
}

function refuse(problem: string): never {
  throw new SecretStoreError("misconfigured", `store.address cannot be used: ${problem}`, {
    hint: "Write it like https://vault.example.com:8200",
  });
}
