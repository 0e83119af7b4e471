import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "@devplat/base";
import { PEER_OFFERS, type PeerOffer } from "../../config/sections/peer-offers.ts";
import type { PeerServer, PeerSocket } from "../forwards/connection.ts";
import type { RemoteEntry } from "../forwards/file/remote-entry.ts";
import type { LentToken } from "../forwards/tokens/child-tokens.ts";
import { loanSettings, type TokenLender } from "../forwards/tokens/token-lender.ts";
import { closeServer, createBoundedServer } from "../listening/bounded-server.ts";
import type { ApiParts } from "../http-api/environment.ts";
import { guardedListener } from "../http-api/guarded-listener.ts";
import type { Problem } from "../http-api/problems/problem.ts";
import { requestFault } from "../http-api/request-checks.ts";
import { peerSocketRoutes } from "./routes.ts";
import { tokenRoute } from "./token-route.ts";
import { listenOnPath } from "../listening/socket-place.ts";

/** Everybody on the remote host who can open the remote socket shares these. Others are closed when they are accepted. */
const MAX_CONNECTIONS = 32;
const NONCE_BYTES = 16;
/** The store may be slow; a revocation goes on after this. In milliseconds. */
const REVOCATION_WAIT_MS = 2000;

export interface RemotePeersParts extends Pick<ApiParts, "view" | "actions" | "accessCheck" | "logger"> {
  /** `api.peer.offers`. Asked for each connection. */
  readonly offers: () => readonly PeerOffer[];
  readonly lender: Pick<TokenLender, "lend" | "change" | "revoke">;
  readonly clock: Clock;
}

/** Serves each remote host on a socket of its own: only its offers, and never the API. */
export class RemotePeers implements PeerServer {
  readonly #parts: RemotePeersParts;
  /** Hosts by the nonces of their sockets. */
  readonly #hosts = new Map<string, string>();

  constructor(parts: RemotePeersParts) {
    this.#parts = parts;
  }

  /** @throws AgentError `socket_in_use` | `socket_refused` */
  async listen(path: string, entry: RemoteEntry): Promise<PeerSocket> {
    const { view, logger, lender, clock } = this.#parts;
    let settings = loanSettings(entry);
    const lend = (): Promise<LentToken> => lender.lend(entry.host, settings);
    const tokens = tokenRoute({ view, lend });
    const nonce = randomBytes(NONCE_BYTES).toString("hex");
    const app = peerSocketRoutes(
      { ...this.#parts, surface: `forward to ${entry.host}`, tokens, nonce },
      offersOf(entry, this.#parts.offers()),
    );
    const server = createBoundedServer(MAX_CONNECTIONS);
    const refusalOf = async (request: IncomingMessage): Promise<Problem | undefined> => requestFault(request);
    server.on("request", guardedListener(app, refusalOf, logger));
    const placed = await listenOnPath(server, path);
    this.#hosts.set(nonce, entry.host);
    return {
      nonce,
      lendBy: async (changed) => {
        const before = settings;
        settings = loanSettings(changed);
        if (!isDeepStrictEqual(before, settings)) await lender.change(entry.host, settings);
      },
      close: async () => {
        this.#hosts.delete(nonce);
        await placed.remove();
        await closeServer(server, () => undefined);
        const limit = new AbortController();
        const late = clock.sleep(REVOCATION_WAIT_MS, limit.signal).catch(() => undefined);
        await Promise.race([lender.revoke(entry.host), late]);
        limit.abort();
      },
    };
  }

  hostOf(nonce: string): string | undefined {
    return this.#hosts.get(nonce);
  }
}

/** The offers of an entry: it can only narrow those of the configuration. */
export function offersOf(entry: Pick<RemoteEntry, "offers">, configured: readonly PeerOffer[]): PeerOffer[] {
  const wanted = entry.offers ?? PEER_OFFERS;
  return configured.filter((offer) => wanted.includes(offer));
}
