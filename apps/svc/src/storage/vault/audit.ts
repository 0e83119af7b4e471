import type { AuditPage, AuditQuery, AuditRecord, AuditStore } from "../../audit/audit-store.ts";
import { cursorOf, isAfter, positionOf, type ListPosition } from "../time-cursor.ts";
import type { VaultKv } from "./kv.ts";

const HOUR_MS = 60 * 60 * 1000;

/** Records of one hour that were written together. */
interface Batch {
  readonly records: readonly AuditRecord[];
}

/**
 * A document per batch, in a folder per day and hour: `audit/2026-11-21/14/<id of the first record>`. A look goes back
 * hour by hour; it suits the thousands of records of a small service, and not the millions of a large one.
 */
export class VaultAudit implements AuditStore {
  readonly #kv: VaultKv;

  constructor(kv: VaultKv) {
    this.#kv = kv;
  }

  async append(records: readonly AuditRecord[]): Promise<void> {
    const hours = Map.groupBy(records, ({ at }) => folderOf(at));
    for (const [folder, ofHour] of hours) await this.#appendTo(folder, ofHour);
  }

  async query(query: AuditQuery): Promise<AuditPage> {
    const after = query.cursor === undefined ? undefined : positionOf(query.cursor);
    if (query.cursor !== undefined && after === undefined) return { records: [], next: undefined };
    const found: AuditRecord[] = [];
    for await (const folder of this.#foldersBackFrom(Math.min(after?.at ?? Infinity, query.to ?? Infinity))) {
      if (query.from !== undefined && folder < folderOf(query.from)) break;
      const records = await this.#recordsIn(folder);
      found.push(...records.filter((record) => matches(record, query, after)).toSorted(newestFirst));
      if (found.length > query.limit) break;
    }
    const page = found.slice(0, query.limit);
    const last = page.at(-1);
    return {
      records: page,
      next: found.length > query.limit && last !== undefined ? cursorOf(last) : undefined,
    };
  }

  async deleteBefore(time: number): Promise<number> {
    let deleted = 0;
    for await (const folder of this.#foldersBackFrom(time)) {
      for (const name of await this.#kv.list(folder)) {
        deleted += await this.#deleteIn(`${folder}/${name}`, time);
      }
    }
    return deleted;
  }

  async #appendTo(folder: string, records: readonly AuditRecord[]): Promise<void> {
    const [first] = records;
    if (first === undefined) return;
    const path = `${folder}/${first.id}`;
    if (await this.#kv.write(path, { records }, 0)) return;
    // Sent again: what that document has is there, and the rest follows under a name of its own.
    const known = new Set((await this.#kv.read<Batch>(path))?.value.records.map(({ id }) => id));
    await this.#appendTo(
      folder,
      records.filter(({ id }) => !known.has(id)),
    );
  }

  async #deleteIn(path: string, time: number): Promise<number> {
    const stored = await this.#kv.read<Batch>(path);
    if (stored === undefined) return 0;
    const kept = stored.value.records.filter(({ at }) => at >= time);
    if (kept.length === 0) await this.#kv.remove(path);
    else await this.#kv.write(path, { records: kept }, stored.version);
    return stored.value.records.length - kept.length;
  }

  /** Folders of hours that hold records from that time or before, newest first. */
  async *#foldersBackFrom(time: number): AsyncGenerator<string> {
    const newest = time === Infinity ? "audit/~" : folderOf(time);
    for (const day of (await this.#kv.list("audit")).toReversed()) {
      if (`audit/${day}` > `${newest}/`) continue;
      for (const hour of (await this.#kv.list(`audit/${day.replace(/\/$/, "")}`)).toReversed()) {
        const folder = `audit/${day}${hour.replace(/\/$/, "")}`;
        if (folder <= newest) yield folder;
      }
    }
  }

  async #recordsIn(folder: string): Promise<readonly AuditRecord[]> {
    const names = await this.#kv.list(folder);
    const batches = await this.#kv.readAll<Batch>(names.map((name) => `${folder}/${name}`));
    return batches.flatMap(({ value }) => value.records.map(complete));
  }
}

/** `audit/2026-11-21/14`, in UTC: sorts by time. */
function folderOf(time: number): string {
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

/** JSON leaves out what is undefined. */
function complete(record: AuditRecord): AuditRecord {
  const { actor, target, remoteAddress, requestId, details } = record;
  const { kind, login, credentialId } = actor;
  return { ...record, actor: { kind, login, credentialId }, target, remoteAddress, requestId, details };
}
