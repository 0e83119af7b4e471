import type { TokenPage, TokenQuery, TokenRecord, TokenStore, TokenUse } from "../store.ts";
import { cursorOf, isAfter, positionOf, type ListPosition } from "../time-cursor.ts";
import { nameFor, type VaultKv } from "./kv.ts";

/** Digits of a time in a name, so that names sort by time: enough until the year 5138. */
const TIME_DIGITS = 14;
/** Documents read for a page at once; those of revoked tokens are passed over. */
const READ_AHEAD = 128;

/**
 * Under the hash of its value; under its id, where that is; and in lists, of all, of its user and of the session that made
 * it, whose names sort by time, so that a page reads only what it shows.
 */
export class VaultTokens implements TokenStore {
  readonly #kv: VaultKv;

  constructor(kv: VaultKv) {
    this.#kv = kv;
  }

  async insert(record: TokenRecord): Promise<void> {
    const { tokenHash: hash } = record;
    const paths = [idPath(record.id), ...listPaths(record)];
    await Promise.all(paths.map(async (path) => this.#kv.write(path, { hash }, 0)));
    await this.#kv.write(hashPath(hash), record, 0);
  }

  async findByHash(tokenHash: string): Promise<TokenRecord | undefined> {
    const stored = await this.#kv.read<TokenRecord>(hashPath(tokenHash));
    return stored === undefined ? undefined : complete(stored.value);
  }

  async get(id: string): Promise<TokenRecord | undefined> {
    const hash = await this.#hashOf(id);
    return hash === undefined ? undefined : this.findByHash(hash);
  }

  async list({ userId, mintedBy, cursor, limit }: TokenQuery): Promise<TokenPage> {
    const after = cursor === undefined ? undefined : positionOf(cursor);
    if (cursor !== undefined && after === undefined) return { records: [], next: undefined };
    const folder =
      mintedBy !== undefined
        ? sessionFolder(mintedBy)
        : userId === undefined
          ? "token-times"
          : `user-token-times/${userId}`;
    const names = (await this.#kv.list(folder)).toReversed().filter((name) => {
      const position = positionIn(name);
      return position !== undefined && (after === undefined || isAfter(position, after));
    });
    const records: TokenRecord[] = [];
    for (let start = 0; start < names.length && records.length <= limit; start += READ_AHEAD) {
      const read = await this.#named(names.slice(start, start + READ_AHEAD));
      records.push(...read.filter((record) => userId === undefined || record.userId === userId));
    }
    const page = records.slice(0, limit);
    const last = page.at(-1);
    const more = records.length > limit && last !== undefined;
    return { records: page, next: more ? cursorOf({ at: last.createdAt, id: last.id }) : undefined };
  }

  async countMintedBy(sessionIds: readonly string[], now: number): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    for (const id of sessionIds) {
      const made = await this.#named(await this.#kv.list(sessionFolder(id)));
      const good = made.filter(({ expiresAt = Infinity }) => expiresAt > now).length;
      if (good > 0) counts.set(id, good);
    }
    return counts;
  }

  async revoke(id: string, now: number): Promise<boolean> {
    const hash = await this.#hashOf(id);
    if (hash === undefined) return false;
    let revoked = false;
    await this.#kv.change<TokenRecord>(hashPath(hash), (token) => {
      revoked = token !== undefined && token.revokedAt === undefined;
      return token === undefined || !revoked ? undefined : { ...token, revokedAt: now };
    });
    return revoked;
  }

  async recordUses(uses: readonly TokenUse[]): Promise<void> {
    for (const { id, uses: count, lastUsedAt, lastIp } of uses) {
      const hash = await this.#hashOf(id);
      if (hash === undefined) continue;
      await this.#kv.change<TokenRecord>(hashPath(hash), (token) =>
        token === undefined ? undefined : { ...token, useCount: token.useCount + count, lastUsedAt, lastIp },
      );
    }
  }

  async deleteEnded(before: number): Promise<number> {
    const hashes = await this.#kv.list("tokens");
    const all = await this.#kv.readAll<TokenRecord>(hashes.map(hashPath));
    const ended = all
      .map(({ value }) => value)
      .filter(({ expiresAt = Infinity, revokedAt = Infinity }) => Math.min(expiresAt, revokedAt) < before);
    for (const token of ended) {
      for (const path of [hashPath(token.tokenHash), idPath(token.id), ...listPaths(token)]) {
        await this.#kv.remove(path);
      }
    }
    return ended.length;
  }

  async #named(names: readonly string[]): Promise<readonly TokenRecord[]> {
    const found = await this.#kv.readAll<TokenRecord>(names.map((name) => hashPath(hashIn(name))));
    return found.map(({ value }) => complete(value)).filter(({ revokedAt }) => revokedAt === undefined);
  }

  async #hashOf(id: string): Promise<string | undefined> {
    return (await this.#kv.read<{ hash: string }>(idPath(id)))?.value.hash;
  }
}

function idPath(id: string): string {
  return `token-ids/${id}`;
}

function hashPath(hash: string): string {
  return `tokens/${hash}`;
}

/** Names that say all that a list needs: time, id, and the hash under which the token lies. */
function listPaths({ id, tokenHash, userId, mintedBy, createdAt }: TokenRecord): readonly string[] {
  const time = String(createdAt).padStart(TIME_DIGITS, "0");
  const name = `${time}.${id}.${nameFor(tokenHash)}`;
  return [
    `token-times/${name}`,
    `user-token-times/${userId}/${name}`,
    ...(mintedBy === undefined ? [] : [`${sessionFolder(mintedBy)}/${name}`]),
  ];
}

/** Where the tokens that were made with a session are listed. */
function sessionFolder(sessionId: string): string {
  return `session-token-times/${sessionId}`;
}

function positionIn(name: string): ListPosition | undefined {
  const [time = "", id = ""] = name.split(".");
  return positionOf(`${Number(time)}.${id}`);
}

function hashIn(name: string): string {
  return Buffer.from(name.split(".")[2] ?? "", "base64url").toString();
}

/** JSON leaves out what is undefined. */
function complete(record: TokenRecord): TokenRecord {
  const { description, sessionId, appId, installation, requestsPerMinute, mintedBy } = record;
  const { expiresAt, revokedAt, lastUsedAt, lastIp } = record;
  return {
    ...record,
    description,
    sessionId,
    appId,
    installation,
    requestsPerMinute,
    mintedBy,
    expiresAt,
    revokedAt,
    lastUsedAt,
    lastIp,
  };
}
