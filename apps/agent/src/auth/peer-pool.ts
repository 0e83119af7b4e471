import { once } from "node:events";
import { lstat, readdir, stat } from "node:fs/promises";
import { request, type IncomingMessage } from "node:http";
import { basename, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { Secret, type Clock, type Logger } from "@devplat/base";
import { z } from "zod";
import { expandHome } from "../sync/rule.ts";
import type { TokenOffer } from "./sign-in.ts";

/** A live peer answers from memory, over a forward of a slow line at most. In milliseconds. */
const ANSWER_TIMEOUT_MS = 3000;
/** A socket without a listener is left behind by a broken connection; it is tried again after this. In milliseconds. */
const EVICTION_MS = 5 * 60_000;
/** A token and its end; more is no answer of a peer. In characters. */
const MAX_ANSWER = 64 * 1024;

const answerSchema = z.object({ token: z.string().min(1) });

interface Peer {
  readonly path: string;
  /** Device and inode: a socket that was made anew is another one. */
  readonly key: string;
  readonly modified: number;
}

export interface PeerPoolParts {
  /** `store.token_socket`: paths whose last segment may hold `*` and `?`. */
  readonly patterns: readonly string[];
  readonly home: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The sockets over which other daemons of this user (on the workstation in front of it) lend their token. */
export class PeerPool {
  readonly #parts: PeerPoolParts;
  /** When a peer last answered, on the monotonic clock. */
  readonly #answered = new Map<string, number>();
  /** Until when a peer is left alone. */
  readonly #evicted = new Map<string, number>();

  constructor(parts: PeerPoolParts) {
    this.#parts = parts;
  }

  /** The peers' tokens, one at a time, those first that answered last. Kept nowhere. */
  async *borrow(signal: AbortSignal): AsyncGenerator<TokenOffer> {
    for (const peer of await this.#peers()) {
      const token = await this.#ask(peer, signal);
      if (token !== undefined) yield { token, borrowedFrom: peer.path };
    }
  }

  async #ask(peer: Peer, signal: AbortSignal): Promise<Secret | undefined> {
    const { clock, logger } = this.#parts;
    try {
      const answer = await get(peer.path, "/api/v1/token", signal);
      this.#answered.set(peer.key, clock.monotonic());
      // One that is not signed in itself has none to lend, and stays a peer.
      return answer.status === 200
        ? new Secret(answerSchema.parse(JSON.parse(answer.body)).token)
        : undefined;
    } catch (error) {
      if (error instanceof z.ZodError || error instanceof SyntaxError) {
        logger.warn({ socket: peer.path }, "what answers on the socket is no peer");
        return undefined;
      }
      this.#evicted.set(peer.key, clock.monotonic() + EVICTION_MS);
      return undefined;
    }
  }

  async #peers(): Promise<Peer[]> {
    const { patterns, home, clock } = this.#parts;
    const found = new Map<string, Peer>();
    for (const pattern of patterns) {
      for (const peer of await matching(expandHome(pattern, home))) found.set(peer.key, peer);
    }
    const now = clock.monotonic();
    for (const memory of [this.#answered, this.#evicted]) {
      for (const key of memory.keys()) if (!found.has(key)) memory.delete(key);
    }
    const lastAnswer = (peer: Peer): number => this.#answered.get(peer.key) ?? 0;
    return [...found.values()]
      .filter(({ key }) => (this.#evicted.get(key) ?? 0) <= now)
      .toSorted((a, b) => lastAnswer(b) - lastAnswer(a) || b.modified - a.modified);
  }
}

/** The sockets of this user below a folder that nobody else can write: only so a socket is where its owner put it. */
async function matching(pattern: string): Promise<Peer[]> {
  const folder = dirname(pattern);
  const name = globOf(basename(pattern));
  const uid = process.geteuid?.();
  try {
    const owner = await stat(folder);
    if (uid !== undefined && ((owner.uid !== uid && owner.uid !== 0) || (owner.mode & 0o022) !== 0))
      return [];
    const peers: Peer[] = [];
    for (const each of await readdir(folder)) {
      if (!name.test(each)) continue;
      const path = join(folder, each);
      const found = await lstat(path);
      if (!found.isSocket() || (uid !== undefined && found.uid !== uid)) continue;
      peers.push({ path, key: `${found.dev}:${found.ino}`, modified: found.mtimeMs });
    }
    return peers;
  } catch {
    // No such folder, or a socket that went away meanwhile.
    return [];
  }
}

function globOf(pattern: string): RegExp {
  const source = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${source}$`);
}

async function get(
  socketPath: string,
  path: string,
  signal: AbortSignal,
): Promise<{ status: number; body: string }> {
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
  const outgoing = request({ socketPath, path, signal: inTime, headers: { host: "localhost" } });
  outgoing.end();
  const [incoming] = (await once(outgoing, "response", { signal: inTime })) as [IncomingMessage];
  let length = 0;
  incoming.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > MAX_ANSWER) incoming.destroy(new Error("the answer is too long"));
  });
  return { status: incoming.statusCode ?? 0, body: await text(incoming) };
}
