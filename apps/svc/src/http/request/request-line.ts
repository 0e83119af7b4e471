import type { IncomingMessage } from "node:http";

/** Headers of which a second one would be read by some and not by others: Node takes the first, a proxy in front perhaps the last. */
const ONCE: readonly string[] = ["host", "authorization"];

/** Reason why a proxy in front may read a request differently (RFC 9112 section 3.2). Undefined: there is none. */
export function ambiguity({ rawHeaders, url = "", headers }: IncomingMessage): string | undefined {
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index] ?? "";
    // Most names are of another length: nothing is allocated for them.
    if (raw.length !== 4 && raw.length !== 13) continue;
    const name = raw.toLowerCase();
    if (!ONCE.includes(name)) continue;
    if (seen.has(name)) return `it has more than one ${name === "host" ? "Host" : "Authorization"} header`;
    seen.add(name);
  }
  if (url.startsWith("/")) return undefined;
  const authority = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1];
  return authority !== undefined && plain(authority) !== plain(headers.host ?? "")
    ? "its target names another host than its Host header"
    : undefined;
}

/** An authority as it is compared: without user name and the ports that schemes have by themselves. */
function plain(authority: string): string {
  return authority
    .replace(/^.*@/, "")
    .replace(/:(?:80|443)$/, "")
    .toLowerCase();
}
