import type { SocketOwners, SocketTable } from "./socket-owners.ts";
import type { SocketRecord } from "./socket-table.ts";

/** One table of sockets as it is read again and again. */
interface Reading {
  /** Resolves when the current read has ended. */
  ended: Promise<unknown>;
  /** The next read. All current callers get its records. */
  next: Promise<readonly SocketRecord[]> | undefined;
}

/**
 * Reads the kernel's tables of sockets, each by one read at a time: the kernel takes milliseconds to list one, and many
 * connections may arrive together.
 */
export class SocketSnapshots {
  readonly #owners: Pick<SocketOwners, "read">;
  readonly #readings = new Map<string, Reading>();

  constructor(owners: Pick<SocketOwners, "read">) {
    this.#owners = owners;
  }

  /** The sockets with that port at either end, listed by a read that began after this call. */
  read(table: SocketTable, port: number): Promise<readonly SocketRecord[]> {
    const key = `${table} ${port}`;
    const reading: Reading = this.#readings.get(key) ?? { ended: Promise.resolve(), next: undefined };
    this.#readings.set(key, reading);
    reading.next ??= reading.ended.then(() => {
      reading.next = undefined;
      const records = this.#owners.read(table, port);
      reading.ended = records.catch(() => undefined);
      return records;
    });
    return reading.next;
  }
}
