/** Where a request comes from, for lists of sessions, bounds on tries and the audit; nothing of it is proof of anything. */
export interface Client {
  /** Empty: not known. */
  readonly address: string;
  readonly userAgent: string | undefined;
  readonly requestId: string | undefined;
}

/** Of a `User-Agent`, what a list can show, in characters. */
const MAX_USER_AGENT = 120;

export const NO_CLIENT: Client = { address: "", userAgent: undefined, requestId: undefined };

/** A `User-Agent` as it is kept: short, and without what a log line or a page could trip over. */
export function shortUserAgent(header: string | undefined): string | undefined {
  const text = (header ?? "").replaceAll(/[^\x20-\x7e]/g, "").trim();
  return text === "" ? undefined : text.slice(0, MAX_USER_AGENT);
}
