import { SecretStoreError } from "../errors.ts";

/** Where a Vault server answers: origin and an optional path prefix, without a slash at the end. */
export interface VaultAddress {
  readonly protocol: "http:" | "https:";
  readonly origin: string;
  readonly base: string;
}

/**
 * Reads `store.address`.
 * @throws SecretStoreError `misconfigured`; the text is not quoted, it may hold a password
 */
export function parseAddress(text: string): VaultAddress {
  const url = URL.parse(text);
  if (url === null) refuse("it is no URL");
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

/** Which proxy to go through. */
export interface ProxySettings {
  readonly url: string;
  /** Hosts to reach directly, in the form of `NO_PROXY`. Default none. */
  readonly except?: string;
}

/**
 * The proxy for an address: `store.proxy` if set, else the environment's, by the customary rules: `HTTPS_PROXY` for
 * https, `HTTP_PROXY` for http, upper case first, never for a loopback host, `NO_PROXY` names exceptions.
 *
 * `store.proxy` applies to every host, as somebody wrote it for this store.
 */
export function proxyFor(
  address: string,
  environment: Readonly<Record<string, string | undefined>>,
  configured?: string,
): ProxySettings | undefined {
  if (configured !== undefined && configured !== "") return { url: configured };
  const url = URL.parse(address);
  if (url === null || isLoopback(url.hostname)) return undefined;
  const name = url.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const proxy = environment[name] ?? environment[name.toLowerCase()];
  if (proxy === undefined || proxy === "") return undefined;
  return { url: proxy, except: environment["NO_PROXY"] ?? environment["no_proxy"] ?? "" };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
