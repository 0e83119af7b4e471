import { AgentError } from "../../errors.ts";

/** Address of the web UI, which is always loopback. */
export interface ListenAddress {
  /** `127.0.0.1` or `::1`: what to bind. `localhost`: every address of that name. */
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  /** The host as it is written in a URL: `127.0.0.1`, `[::1]` or `localhost`. */
  readonly urlHost: string;
}

const FORM = /^(127\.0\.0\.1|\[::1\]|localhost):(\d{1,5})$/i;

/**
 * Reads `web.listen`. There is no way around the loopback rule: the UI shows and edits secrets without TLS.
 *
 * `localhost` is 127.0.0.1 and ::1 here without asking a resolver, which could answer anything.
 *
 * @throws AgentError `listen_refused`
 */
export function parseListenAddress(text: string): ListenAddress {
  const match = FORM.exec(text);
  const port = Number(match?.[2]);
  if (match?.[1] === undefined || port > 65_535) {
    throw new AgentError(
      "listen_refused",
      `Cannot listen on "${text}": web.listen must be loopback with a port`,
      {
        hint: "Use 127.0.0.1:8200, [::1]:8200 or localhost:8200. To reach the UI from elsewhere, forward the port with ssh -L.",
      },
    );
  }
  const urlHost = match[1].toLowerCase();
  return { address: urlHost === "[::1]" ? "::1" : urlHost, port, urlHost };
}
