import type { Clock } from "@devplat/base";
import type { IdleDetector } from "./mirror/idle-detector.ts";
import { Maintenance } from "./mirror/maintenance.ts";
import type { MirrorChange } from "./mirror/mirror-change.ts";
import { Mirrors } from "./mirror/mirrors.ts";
import { Repairs } from "./mirror/repairs.ts";
import { MirrorResponder } from "./responder/mirror-responder.ts";
import { MirrorLookup } from "./responder/object-lookup.ts";
import { Reachability } from "./responder/reachability.ts";
import type { MirrorStorage } from "./storage/contract.ts";
import type { RepositoryId } from "./storage/repository-id.ts";
import type { MirrorThreads } from "./threads/mirror-threads.ts";

export interface MirrorSetParts {
  readonly storage: MirrorStorage;
  readonly threads: MirrorThreads;
  readonly clock: Clock;
  /** Says when a repository is idle. Only then it is repacked. */
  readonly idle: IdleDetector;
  /** Milliseconds for which objects of dropped refs are retained. Infinity: for ever. */
  readonly pruneAfterMs: number;
  /** Whether this process repacks a repository. Default: it does. */
  readonly mayRepack?: (id: RepositoryId) => Promise<boolean>;
  /** Called after each change of a mirror. Default: nothing. */
  readonly onChanged?: (id: RepositoryId, change: MirrorChange) => void;
  /** Called after a failed repack. `key` is `owner/name`. */
  readonly onRepackFailure: (key: string, error: unknown) => Promise<void>;
  /** Called with the name of an index file that was damaged. The mirror writes it again. */
  readonly onDamagedIndex: (file: string) => void;
}

/** All parts that work on the mirrors of a process. */
export interface MirrorSet {
  readonly mirrors: Mirrors;
  readonly repairs: Repairs;
  readonly lookup: MirrorLookup;
  readonly responder: MirrorResponder;
  /** Starts no repack any more, and lets threads finish without rests. */
  stop(): void;
  /** Waits for fills, repairs, repacks and removals. */
  settled(): Promise<void>;
  /** Closes all files and ends the threads. */
  close(): Promise<void>;
}

export function createMirrorSet(parts: MirrorSetParts): MirrorSet {
  const { storage, threads, clock, idle, pruneAfterMs, onRepackFailure, onDamagedIndex } = parts;
  const { mayRepack = () => Promise.resolve(true), onChanged = () => undefined } = parts;
  const maintenance = new Maintenance({
    idle,
    pruneAfterMs,
    mayRepack,
    onFailure: onRepackFailure,
    onIdle: () => threads.maintenance.rest(),
  });
  const mirrors = new Mirrors({ storage, threads, maintenance, onDamagedIndex, onChanged });
  const repairs = new Repairs(mirrors, clock);
  const reachability = new Reachability();
  return {
    mirrors,
    repairs,
    lookup: new MirrorLookup(mirrors, reachability),
    responder: new MirrorResponder(mirrors, reachability),
    stop: () => {
      threads.urgency.always();
      maintenance.stop();
    },
    settled: async () => {
      await mirrors.settled();
      await repairs.settled();
      await maintenance.settled();
      await storage.settled();
    },
    close: async () => {
      maintenance.stop();
      mirrors.close();
      await threads.close();
    },
  };
}
