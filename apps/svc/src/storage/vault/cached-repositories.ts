import { SvcError } from "../../errors.ts";
import type { CachedRepositoryRecord, CachedRepositoryStore } from "../store.ts";
import { nameFor, type VaultKv } from "./kv.ts";

/** All repositories of one owner. */
interface OwnerDocument {
  readonly records: readonly CachedRepositoryRecord[];
}

const FOLDER = "cached-repositories";

/** One document per owner: a name is unique in it, and a list reads few. */
export class VaultCachedRepositories implements CachedRepositoryStore {
  readonly #kv: VaultKv;

  constructor(kv: VaultKv) {
    this.#kv = kv;
  }

  async list(): Promise<readonly CachedRepositoryRecord[]> {
    const names = await this.#kv.list(FOLDER);
    const documents = await this.#kv.readAll<OwnerDocument>(names.map((name) => `${FOLDER}/${name}`));
    return documents
      .flatMap(({ value }) => value.records.map(complete))
      .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  }

  async insert(record: CachedRepositoryRecord): Promise<void> {
    await this.#kv.change<OwnerDocument>(documentOf(record), (document) => {
      const records = document?.records ?? [];
      if (records.some((each) => keyOf(each) === keyOf(record))) {
        throw new SvcError("already_exists", `${record.owner}/${record.name} is listed already`);
      }
      return { records: [...records, record] };
    });
  }

  async update(record: CachedRepositoryRecord): Promise<boolean> {
    let updated = false;
    await this.#kv.change<OwnerDocument>(documentOf(record), (document) => {
      const records = document?.records ?? [];
      const stored = records.find(({ id }) => id === record.id);
      updated = stored?.version === record.version - 1;
      if (stored === undefined || !updated) return undefined;
      const { owner, name, createdAt } = stored;
      return {
        records: records.map((each) => (each === stored ? { ...record, owner, name, createdAt } : each)),
      };
    });
    return updated;
  }

  async delete(id: string): Promise<boolean> {
    const found = (await this.list()).find((each) => each.id === id);
    if (found === undefined) return false;
    let deleted = false;
    await this.#kv.change<OwnerDocument>(documentOf(found), (document) => {
      const records = document?.records ?? [];
      deleted = records.some((each) => each.id === id);
      return deleted ? { records: records.filter((each) => each.id !== id) } : undefined;
    });
    return deleted;
  }
}

function keyOf({ owner, name }: CachedRepositoryRecord): string {
  return `${owner}/${name}`.toLowerCase();
}

function documentOf({ owner }: CachedRepositoryRecord): string {
  return `${FOLDER}/${nameFor(owner.toLowerCase())}`;
}

/** JSON leaves out what is undefined. */
function complete(record: CachedRepositoryRecord): CachedRepositoryRecord {
  return { ...record, timeoutSeconds: record.timeoutSeconds, maxCacheSizeMb: record.maxCacheSizeMb };
}
