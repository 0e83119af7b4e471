/** Origin of a request, for lists of sessions, limits on tries and the audit. It is not authenticated. */
export interface Client {
  /** Empty: not known. */
  readonly address: string;
  readonly userAgent: string | undefined;
  readonly requestId: string | undefined;
}

/** Maximum characters of a stored `User-Agent`. */
const MAX_USER_AGENT = 120;

export const NO_CLIENT: Client = { address: "", userAgent: undefined, requestId: undefined };

/** A `User-Agent` as it is stored: short, and without control characters. */
export function shortUserAgent(header: string | undefined): string | undefined {
  const text = (header ?? "").replaceAll(/[^\x20-\x7e]/g, "").trim();
  return text === "" ? undefined : text.slice(0, MAX_USER_AGENT);
}
