import { hash } from "node:crypto";
import { Readable } from "node:stream";
import { ObjectStoreError, checkKey, type ObjectStore, type WriteCondition } from "@devplat/object-store";

interface Version {
  readonly bytes: Buffer;
  readonly etag: string;
}

/** Behaviour of a fake client. Each function is asked for each request. */
export interface FakeBehaviour {
  /** Resolves when the next step of a request may happen. */
  readonly turn?: () => Promise<void>;
  /** Number of versions by which a read is old. */
  readonly staleBy?: () => number;
  /** `lost`: the write happens, its response does not come; `late`: the same, and it happens after a while; `refused`. */
  readonly writeFault?: () => "lost" | "late" | "refused" | undefined;
  readonly readFault?: () => boolean;
}

/**
 * A fake of a bucket, in memory, for random schedules that no real server can follow. It keeps every version, honours
 * conditions, and can show old versions. Real servers are used everywhere else.
 */
export class FakeBucket {
  /** All versions of each object, oldest first. */
  readonly versions = new Map<string, Version[]>();
  /** Names of deleted objects. They are not written again. */
  readonly deleted = new Set<string>();
  readonly counts = { get: 0, put: 0 };

  put(key: string, bytes: Uint8Array, condition?: WriteCondition): string {
    const versions = this.versions.get(key) ?? [];
    const last = versions.at(-1);
    const holds =
      condition === undefined ||
      ("ifMatch" in condition ? condition.ifMatch === last?.etag : last === undefined);
    if (!holds) throw new ObjectStoreError("condition_failed", "fake: it has changed");
    const etag = `"${hash("sha256", bytes).slice(0, 16)}-${versions.length}"`;
    this.versions.set(key, [...versions, { bytes: Buffer.from(bytes), etag }]);
    return etag;
  }

  /** A client with faults. Only `get`, `put` and `delete` are there. */
  client(behaviour: FakeBehaviour = {}): ObjectStore {
    const { turn = () => Promise.resolve(), staleBy = () => 0 } = behaviour;
    const client = {
      get: async (key: string, options: { readonly ifNoneMatch?: string } = {}) => {
        checkKey(key);
        this.counts.get++;
        await turn();
        if (behaviour.readFault?.() === true) throw new ObjectStoreError("unreachable", "fake: no response");
        const version = this.deleted.has(key) ? undefined : this.versions.get(key)?.at(-1 - staleBy());
        await turn();
        if (version === undefined) throw new ObjectStoreError("missing", "fake: it is not there");
        if (version.etag === options.ifNoneMatch) return { modified: false as const, etag: version.etag };
        const { length } = version.bytes;
        const body = Readable.from([version.bytes], { objectMode: false });
        return { modified: true as const, etag: version.etag, length, bodyLength: length, body };
      },
      put: async (
        key: string,
        bytes: Uint8Array,
        { condition }: { readonly condition?: WriteCondition } = {},
      ) => {
        checkKey(key);
        this.counts.put++;
        const fault = behaviour.writeFault?.();
        await turn();
        if (fault === "refused") throw new ObjectStoreError("slow_down", "fake: fewer requests");
        const lost = new ObjectStoreError("timeout", "fake: no response", { outcomeUnknown: true });
        if (fault === "late") {
          void turn()
            .then(turn)
            .then(turn)
            .then(() => this.put(key, bytes, condition))
            .catch(() => undefined);
          throw lost;
        }
        const etag = this.put(key, bytes, condition);
        await turn();
        if (fault === "lost") throw lost;
        return { etag };
      },
      delete: async (key: string) => {
        await turn();
        this.deleted.add(key);
      },
      now: () => 1_700_000_000_000,
      close: () => Promise.resolve(),
    };
    return client as unknown as ObjectStore;
  }
}
