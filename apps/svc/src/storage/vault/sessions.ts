import type { SessionRecord, SessionStore } from "../store.ts";
import { DocumentsByHash } from "./documents-by-hash.ts";
import type { VaultKv } from "./kv.ts";

export function vaultSessions(kv: VaultKv): SessionStore {
  const documents = new DocumentsByHash<SessionRecord>(kv, "sessions", "session-ids");
  const list: SessionStore["list"] = async (filter = {}) =>
    (await documents.list())
      .filter(({ userId }) => filter.userId === undefined || userId === filter.userId)
      .filter(({ kind }) => filter.kind === undefined || kind === filter.kind)
      .toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));

  /** Removes the version that was read, so that a session that is seen at this moment does not come back. */
  const removeDocument = async (hash: string): Promise<boolean> => {
    const path = documents.pathOf(hash);
    for (;;) {
      const stored = await kv.read<SessionRecord | null>(path);
      if (stored === undefined || stored.value === null) return false;
      if (await kv.removeVersion(path, stored.version)) return true;
    }
  };
  const remove = async (id: string): Promise<boolean> => {
    const hash = await documents.hashOf(id);
    if (hash === undefined) return false;
    const deleted = await removeDocument(hash);
    await kv.remove(documents.idPathOf(id));
    return deleted;
  };
  const removeAll = async (sessions: readonly SessionRecord[]): Promise<number> => {
    let deleted = 0;
    for (const { id } of sessions) if (await remove(id)) deleted++;
    return deleted;
  };
  return {
    insert: async (record) => documents.insert(record),
    findByHash: async (tokenHash) => documents.find(tokenHash),
    get: async (id) => documents.get(id),
    list,
    recordSeen: async (id, at) => documents.change(id, (session) => ({ ...session, lastSeenAt: at })),
    delete: remove,
    deleteOfUser: async (userId, kind) => removeAll(await list({ userId, kind })),
    deleteExpired: async (before) => removeAll((await list()).filter(({ expiresAt }) => expiresAt < before)),
  };
}
