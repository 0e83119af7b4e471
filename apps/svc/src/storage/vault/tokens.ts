import type { TokenRecord, TokenStore } from "../store.ts";
import { isAfter, pageOf, positionOf, type ListPosition } from "../list-order.ts";
import { DocumentsByHash } from "./documents-by-hash.ts";
import { nameFor, type VaultKv } from "./kv.ts";

/** Digits of a time in a name, so that names sort by time: enough until the year 5138. */
const TIME_DIGITS = 14;
/** Documents that are read for a page at a time. Revoked tokens are left out of the page. */
const READ_AHEAD = 128;

/**
 * Tokens are also named in lists: of all tokens, of their user, and of the session that made them. The names sort by time, so
 * that a page reads only the tokens that it shows.
 */
export function vaultTokens(kv: VaultKv): TokenStore {
  const documents = new DocumentsByHash<TokenRecord>(kv, "tokens", "token-ids");
  const readNamed = async (names: readonly string[]): Promise<readonly TokenRecord[]> =>
    (await documents.read(names.map(hashIn))).filter(({ revokedAt }) => revokedAt === undefined);
  return {
    async insert(record) {
      const { tokenHash: hash } = record;
      await Promise.all(tokenListPaths(record).map(async (path) => kv.write(path, { hash }, 0)));
      await documents.insert(record);
    },

    findByHash: async (tokenHash) => documents.find(tokenHash),
    get: async (id) => documents.get(id),

    async list({ userId, mintedBy, cursor, limit }) {
      const after = cursor === undefined ? undefined : positionOf(cursor);
      if (cursor !== undefined && after === undefined) return { records: [], next: undefined };
      const folder =
        mintedBy !== undefined
          ? sessionFolder(mintedBy)
          : userId === undefined
            ? "token-times"
            : `user-token-times/${userId}`;
      const names = (await kv.list(folder)).toReversed().filter((name) => {
        const position = positionIn(name);
        return position !== undefined && (after === undefined || isAfter(position, after));
      });
      const records: TokenRecord[] = [];
      for (let start = 0; start < names.length && records.length <= limit; start += READ_AHEAD) {
        const read = await readNamed(names.slice(start, start + READ_AHEAD));
        records.push(...read.filter((record) => userId === undefined || record.userId === userId));
      }
      return pageOf(records, limit, ({ createdAt, id }) => ({ at: createdAt, id }));
    },

    async countMintedBy(sessionIds, now) {
      const counts = new Map<string, number>();
      for (const id of sessionIds) {
        const made = await readNamed(await kv.list(sessionFolder(id)));
        const good = made.filter(({ expiresAt = Infinity }) => expiresAt > now).length;
        if (good > 0) counts.set(id, good);
      }
      return counts;
    },

    async revoke(id, now) {
      let revoked = false;
      await documents.change(id, (token) => {
        revoked = token.revokedAt === undefined;
        return revoked ? { ...token, revokedAt: now } : undefined;
      });
      return revoked;
    },

    async recordUses(uses) {
      for (const { id, uses: count, lastUsedAt, lastIp } of uses) {
        await documents.change(id, (token) => ({
          ...token,
          useCount: token.useCount + count,
          lastUsedAt,
          lastIp,
        }));
      }
    },

    async deleteEnded(before) {
      const ended = (await documents.list()).filter(
        ({ expiresAt = Infinity, revokedAt = Infinity }) => Math.min(expiresAt, revokedAt) < before,
      );
      for (const token of ended) {
        const { id, tokenHash } = token;
        const paths = [documents.pathOf(tokenHash), documents.idPathOf(id), ...tokenListPaths(token)];
        for (const path of paths) await kv.remove(path);
      }
      return ended.length;
    },
  };
}

/** Paths in the lists. A name has all that a list needs: time, id, and the hash that the token is stored under. */
export function tokenListPaths({
  id,
  tokenHash,
  userId,
  mintedBy,
  createdAt,
}: TokenRecord): readonly string[] {
  const time = String(createdAt).padStart(TIME_DIGITS, "0");
  const name = `${time}.${id}.${nameFor(tokenHash)}`;
  return [
    `token-times/${name}`,
    `user-token-times/${userId}/${name}`,
    ...(mintedBy === undefined ? [] : [`${sessionFolder(mintedBy)}/${name}`]),
  ];
}

/** List of the tokens that were made with a session. */
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
