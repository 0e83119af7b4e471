import { SvcError } from "../../errors.ts";
import type { CachedRepositoryRecord, CachedRepositoryStore } from "../store.ts";
import { counted } from "./coordination/changes.ts";
import { nameFor, type VaultKv } from "./kv.ts";

/** All repositories of one owner. */
export interface OwnerDocument {
  readonly records: readonly CachedRepositoryRecord[];
}

const FOLDER = "cached-repositories";

/** One document per owner: a name is unique in it, and a list reads few documents. */
export function vaultCachedRepositories(kv: VaultKv): CachedRepositoryStore {
  const list = async (): Promise<readonly CachedRepositoryRecord[]> => {
    const names = await kv.list(FOLDER);
    const documents = await kv.readAll<OwnerDocument>(names.map((name) => `${FOLDER}/${name}`));
    return documents.flatMap(({ value }) => value.records).toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  };
  const changed = async (change: () => Promise<boolean>): Promise<boolean> =>
    counted(kv, "repositories", change);
  return {
    list,

    async insert(record) {
      await changed(async () => {
        await kv.change<OwnerDocument>(documentOf(record), ({ records } = { records: [] }) => {
          if (records.some((each) => keyOf(each) === keyOf(record))) {
            throw new SvcError("already_exists", `${record.owner}/${record.name} is listed already`);
          }
          return { records: [...records, record] };
        });
        return true;
      });
    },

    async update(record) {
      return changed(async () => {
        let updated = false;
        await kv.change<OwnerDocument>(documentOf(record), ({ records } = { records: [] }) => {
          const stored = records.find(({ id }) => id === record.id);
          updated = stored?.version === record.version - 1;
          if (stored === undefined || !updated) return undefined;
          const { owner, name, createdAt } = stored;
          const next = { ...record, owner, name, createdAt };
          return { records: records.map((each) => (each === stored ? next : each)) };
        });
        return updated;
      });
    },

    async delete(id) {
      const found = (await list()).find((each) => each.id === id);
      if (found === undefined) return false;
      return changed(async () => {
        let deleted = false;
        await kv.change<OwnerDocument>(documentOf(found), ({ records } = { records: [] }) => {
          const others = records.filter((each) => each.id !== id);
          deleted = others.length < records.length;
          return deleted ? { records: others } : undefined;
        });
        return deleted;
      });
    },
  };
}

function keyOf({ owner, name }: CachedRepositoryRecord): string {
  return `${owner}/${name}`.toLowerCase();
}

export function documentOf({ owner }: CachedRepositoryRecord): string {
  return `${FOLDER}/${nameFor(owner.toLowerCase())}`;
}
