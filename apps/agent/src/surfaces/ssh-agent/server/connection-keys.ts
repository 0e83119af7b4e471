import { visible } from "@devplat/base/terminal";
import { MAX_AGENT_MESSAGE_BYTES, type Identity } from "@devplat/ssh-protocol";
import type { KeyRestrictions } from "../identity.ts";
import { listingOf, type Listing, type Origin } from "../policy/permission.ts";
import type { SessionChain } from "../policy/session-chain.ts";
import type { Connection, SessionParts } from "./connection-parts.ts";
import type { OwnKey } from "./own-keys.ts";

/** Keys that a client reads in one answer, as in OpenSSH. */
const MAX_LISTED_KEYS = 2048;
/** Lengths of blob and comment of a listed key. */
const IDENTITY_OVERHEAD_BYTES = 8;

/** An own key, as one connection sees it. */
export interface VisibleKey extends OwnKey {
  readonly listing: Exclude<Listing, "withheld">;
}

/** The keys that one connection sees, which depends on the sessions that its client has bound. */
export class ConnectionKeys {
  readonly #parts: Pick<SessionParts, "ownKeys" | "hosts" | "onWithheld">;
  readonly #connection: Connection;

  constructor(parts: Pick<SessionParts, "ownKeys" | "hosts" | "onWithheld">, connection: Connection) {
    this.#parts = parts;
    this.#connection = connection;
  }

  /** The own keys, then those of other agents, each key once, and not more than a client reads. */
  async list(chain: SessionChain, signal: AbortSignal): Promise<Identity[]> {
    const [{ keys, origin, withheld }, ...relayed] = await Promise.all([
      this.visible(chain),
      ...this.#connection.relays.map((relay) => relay.identities(signal)),
    ]);
    if (origin.kind === "unknown" && withheld > 0) this.#parts.onWithheld(withheld);
    const own = keys.map(({ identity: { blob, comment, restrictions }, listing }) => ({
      blob,
      comment: visible(listing === "marked" ? `${comment} (${restrictionText(restrictions)})` : comment),
    }));
    const merged = new Map<string, Identity>();
    let bytes = 0;
    for (const identity of [...own, ...relayed.flat()]) {
      const name = identity.blob.toString("latin1");
      bytes += identity.blob.length + Buffer.byteLength(identity.comment) + IDENTITY_OVERHEAD_BYTES;
      // A longer answer would be refused as a whole.
      if (merged.size === MAX_LISTED_KEYS || bytes > MAX_AGENT_MESSAGE_BYTES - IDENTITY_OVERHEAD_BYTES) break;
      if (!merged.has(name)) merged.set(name, identity);
    }
    return [...merged.values()];
  }

  /** The own keys; a key of two sources is there once for each. */
  async visible(
    chain: SessionChain,
  ): Promise<{ readonly keys: VisibleKey[]; readonly origin: Origin; readonly withheld: number }> {
    const all = await this.#parts.ownKeys.list();
    const { sources } = this.#connection.scope;
    const offered = all.filter(({ source }) => sources === undefined || sources.includes(source));
    const origin = await this.origin(
      chain,
      offered.flatMap(({ identity: { restrictions } }) => [
        ...(restrictions.hosts ?? []),
        ...(restrictions.via ?? []),
      ]),
    );
    const keys = offered.flatMap((key): VisibleKey[] => {
      const listing = listingOf(key.identity.restrictions, origin);
      return listing === "withheld" ? [] : [{ ...key, listing }];
    });
    return { keys: keys.toSorted(byListing), origin, withheld: offered.length - keys.length };
  }

  /** Where the requests come from. @param patterns hosts of the keys that are looked at */
  async origin(chain: SessionChain, patterns: readonly string[]): Promise<Origin> {
    const { scope, caller } = this.#connection;
    return await this.#parts.hosts.originOf(chain, caller, { knownHosts: scope.knownHosts, patterns });
  }
}

/** Keys that log in to this host come before others, so that they are among the few that a server lets a client try. */
function byListing(one: VisibleKey, other: VisibleKey): number {
  return Number(one.listing === "marked") - Number(other.listing === "marked");
}

function restrictionText({ hosts, via }: KeyRestrictions): string {
  const way = via === undefined || via.length === 0 ? "" : ` via ${via.join(", ")}`;
  return `only for ${hosts?.join(", ") ?? "hosts"}${way}`;
}
