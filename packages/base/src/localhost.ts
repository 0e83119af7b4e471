import { systemCode } from "./errors.ts";

/** The addresses that `localhost` means to a program that connects (RFC 6761 section 6.3). */
const LOCALHOST_ADDRESSES = ["127.0.0.1", "::1"] as const;
/** With any port, the one that is free on the first address may be taken on the second: so many are tried. */
const MAX_TRIES = 8;

export interface BoundLocalhost {
  readonly port: number;
  /** Those that this host has: at least one. */
  readonly addresses: readonly string[];
}

/**
 * Binds one port on every address of `localhost`. A program that is told `localhost` takes either, so whoever binds only
 * one leaves the other to any user of the host.
 *
 * @param port 0: any that is free on all addresses
 * @param bind binds one address. @returns its port
 * @param unbind takes back what was bound, after a failure
 * @throws the error of `bind`; a host that has only one of the addresses is no failure
 */
export async function bindLocalhost(
  port: number,
  bind: (address: string, port: number) => Promise<number>,
  unbind: () => Promise<void>,
): Promise<BoundLocalhost> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await bindEach(port, bind);
    } catch (error) {
      await unbind();
      if (port !== 0 || !hasCode(error, ["EADDRINUSE"]) || tries === MAX_TRIES) throw error;
    }
  }
}

async function bindEach(
  wanted: number,
  bind: (address: string, port: number) => Promise<number>,
): Promise<BoundLocalhost> {
  let port = wanted;
  const addresses: string[] = [];
  let absent: unknown;
  for (const address of LOCALHOST_ADDRESSES) {
    try {
      port = await bind(address, port);
      addresses.push(address);
    } catch (error) {
      if (!hasCode(error, ["EADDRNOTAVAIL", "EAFNOSUPPORT"])) throw error;
      absent = error;
    }
  }
  if (addresses.length === 0) throw absent;
  return { port, addresses };
}

/** Whether the error, or the one that it tells of, is a system error with one of the codes. */
function hasCode(error: unknown, codes: readonly string[]): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return [error, cause].some((each) => codes.includes(systemCode(each) ?? ""));
}
