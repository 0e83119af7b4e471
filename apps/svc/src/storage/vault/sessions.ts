import type { SessionRecord, SessionStore } from "../store.ts";
import type { VaultKv } from "./kv.ts";

/** Under the hash of its token; and under its id, where that is. */
export class VaultSessions implements SessionStore {
  readonly #kv: VaultKv;

  constructor(kv: VaultKv) {
    this.#kv = kv;
  }

  async insert(record: SessionRecord): Promise<void> {
    await this.#kv.write(idPath(record.id), { hash: record.tokenHash }, 0);
    await this.#kv.write(hashPath(record.tokenHash), record, 0);
  }

  async findByHash(tokenHash: string): Promise<SessionRecord | undefined> {
    const stored = await this.#kv.read<SessionRecord | null>(hashPath(tokenHash));
    const session = stored?.value ?? undefined;
    return session === undefined ? undefined : complete(session);
  }

  async get(id: string): Promise<SessionRecord | undefined> {
    const hash = await this.#hashOf(id);
    return hash === undefined ? undefined : this.findByHash(hash);
  }

  async list(filter: Parameters<SessionStore["list"]>[0] = {}): Promise<readonly SessionRecord[]> {
    const hashes = await this.#kv.list("sessions");
    const documents = await this.#kv.readAll<SessionRecord | null>(hashes.map(hashPath));
    return documents
      .flatMap(({ value }) => (value === null ? [] : complete(value)))
      .filter(({ userId }) => filter.userId === undefined || userId === filter.userId)
      .filter(({ kind }) => filter.kind === undefined || kind === filter.kind)
      .toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
  }

  async recordSeen(id: string, at: number): Promise<void> {
    const hash = await this.#hashOf(id);
    if (hash === undefined) return;
    await this.#kv.change<SessionRecord | null>(hashPath(hash), (session) =>
      session ? { ...session, lastSeenAt: at } : undefined,
    );
  }

  async delete(id: string): Promise<boolean> {
    const hash = await this.#hashOf(id);
    if (hash === undefined) return false;
    const deleted = await this.#remove(hash);
    await this.#kv.remove(idPath(id));
    return deleted;
  }

  async deleteOfUser(userId: string, kind?: SessionRecord["kind"]): Promise<number> {
    return this.#deleteAll(await this.list({ userId, kind }));
  }

  async deleteExpired(before: number): Promise<number> {
    return this.#deleteAll((await this.list()).filter(({ expiresAt }) => expiresAt < before));
  }

  async #deleteAll(sessions: readonly SessionRecord[]): Promise<number> {
    let deleted = 0;
    for (const { id } of sessions) if (await this.delete(id)) deleted++;
    return deleted;
  }

  /** A session that is seen at the moment of its end must not come back: so it is removed at the version that was read. */
  async #remove(hash: string): Promise<boolean> {
    for (;;) {
      const stored = await this.#kv.read<SessionRecord | null>(hashPath(hash));
      if (stored === undefined || stored.value === null) return false;
      if (await this.#kv.removeVersion(hashPath(hash), stored.version)) return true;
    }
  }

  async #hashOf(id: string): Promise<string | undefined> {
    return (await this.#kv.read<{ hash: string }>(idPath(id)))?.value.hash;
  }
}

function idPath(id: string): string {
  return `session-ids/${id}`;
}

function hashPath(hash: string): string {
  return `sessions/${hash}`;
}

/** JSON leaves out what is undefined. */
function complete(record: SessionRecord): SessionRecord {
  const { name, createdIp, userAgent, lastSeenAt, mintedBy } = record;
  return { ...record, name, createdIp, userAgent, lastSeenAt, mintedBy };
}
