import { systemCode } from "./errors.ts";

/** Addresses that `localhost` resolves to (RFC 6761 section 6.3). */
const LOCALHOST_ADDRESSES = ["127.0.0.1", "::1"] as const;
/** Maximum tries for a free port: a port that is free on the first address may be in use on the second one. */
const MAX_TRIES = 8;

export interface BoundLocalhost {
  readonly port: number;
  /** Bound addresses: those that this host has, at least one. */
  readonly addresses: readonly string[];
}

/**
 * Binds one port on every address of `localhost`. Clients of `localhost` use either address. A program that binds only
 * one leaves the other to any user of the host.
 *
 * @param port number of the port, or 0 for any port that is free on all addresses
 * @param bind binds one address. @returns its port
 * @param unbind releases all bound addresses after a failure
 * @throws the error of `bind`, unless this host lacks only one of the addresses
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

/** Whether the error or its cause is a system error with one of the codes. */
function hasCode(error: unknown, codes: readonly string[]): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return [error, cause].some((each) => codes.includes(systemCode(each) ?? ""));
}
