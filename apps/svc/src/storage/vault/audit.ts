import type { AuditQuery, AuditRecord, AuditStore } from "../../audit/audit-store.ts";
import { isAfter, pageOf, positionOf, type ListPosition } from "../list-order.ts";
import type { VaultKv } from "./kv.ts";

const HOUR_MS = 60 * 60 * 1000;

/** Records of one hour that were written together. */
export interface Batch {
  readonly records: readonly AuditRecord[];
}

/**
 * One document per batch, in a folder per day and hour: `audit/2026-11-21/14/<id of the first record>`. A query goes back
 * hour by hour. This fits the thousands of records of a small service, and not the millions of a large one.
 */
export function vaultAudit(kv: VaultKv): AuditStore {
  const appendTo = async (folder: string, records: readonly AuditRecord[]): Promise<void> => {
    const [first] = records;
    if (first === undefined) return;
    const path = `${folder}/${first.id}`;
    if (await kv.write(path, { records }, 0)) return;
    // A batch that is sent again. The records that the document lacks get a document of their own.
    const known = new Set((await kv.read<Batch>(path))?.value.records.map(({ id }) => id));
    await appendTo(
      folder,
      records.filter(({ id }) => !known.has(id)),
    );
  };

  /** Folders of hours that hold records from that time or before, newest first. */
  async function* foldersBackFrom(time: number): AsyncGenerator<string> {
    const newest = time === Infinity ? "audit/~" : folderOf(time);
    for (const day of (await kv.list("audit")).toReversed()) {
      if (`audit/${day}` > `${newest}/`) continue;
      for (const hour of (await kv.list(`audit/${day.replace(/\/$/, "")}`)).toReversed()) {
        const folder = `audit/${day}${hour.replace(/\/$/, "")}`;
        if (folder <= newest) yield folder;
      }
    }
  }

  const recordsIn = async (folder: string): Promise<readonly AuditRecord[]> => {
    const names = await kv.list(folder);
    const batches = await kv.readAll<Batch>(names.map((name) => `${folder}/${name}`));
    return batches.flatMap(({ value }) => value.records);
  };

  const deleteIn = async (path: string, time: number): Promise<number> => {
    const stored = await kv.read<Batch>(path);
    if (stored === undefined) return 0;
    const kept = stored.value.records.filter(({ at }) => at >= time);
    if (kept.length === 0) await kv.remove(path);
    else await kv.write(path, { records: kept }, stored.version);
    return stored.value.records.length - kept.length;
  };

  return {
    async append(records) {
      const hours = Map.groupBy(records, ({ at }) => folderOf(at));
      for (const [folder, ofHour] of hours) await appendTo(folder, ofHour);
    },

    async query(query) {
      const { cursor, from, to = Infinity, limit } = query;
      const after = cursor === undefined ? undefined : positionOf(cursor);
      if (cursor !== undefined && after === undefined) return { records: [], next: undefined };
      const found: AuditRecord[] = [];
      for await (const folder of foldersBackFrom(Math.min(after?.at ?? Infinity, to))) {
        if (from !== undefined && folder < folderOf(from)) break;
        const records = await recordsIn(folder);
        found.push(...records.filter((record) => matches(record, query, after)).toSorted(newestFirst));
        if (found.length > limit) break;
      }
      return pageOf(found, limit, (record) => record);
    },

    async deleteBefore(time) {
      let deleted = 0;
      for await (const folder of foldersBackFrom(time)) {
        for (const name of await kv.list(folder)) deleted += await deleteIn(`${folder}/${name}`, time);
      }
      return deleted;
    },
  };
}

/** `audit/2026-11-21/14`, in UTC: sorts by time. */
export function folderOf(time: number): string {
  const [day = "", clock = ""] = new Date(Math.floor(time / HOUR_MS) * HOUR_MS).toISOString().split("T");
  return `audit/${day}/${clock.slice(0, 2)}`;
}

function matches(record: AuditRecord, query: AuditQuery, after: ListPosition | undefined): boolean {
  const { actions, actor, target, outcome, from, to } = query;
  const same = (text: string | undefined, wanted: string | undefined): boolean =>
    wanted === undefined || text?.toLowerCase() === wanted.toLowerCase();
  return (
    (actions === undefined || actions.length === 0 || actions.includes(record.action)) &&
    same(record.actor.login, actor) &&
    same(record.target, target) &&
    (outcome === undefined || record.outcome === outcome) &&
    (from === undefined || record.at >= from) &&
    (to === undefined || record.at < to) &&
    (after === undefined || isAfter(record, after))
  );
}

function newestFirst(a: AuditRecord, b: AuditRecord): number {
  return isAfter(a, b) ? 1 : -1;
}
