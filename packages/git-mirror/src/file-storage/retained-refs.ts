import { join } from "node:path";
import type { RetainedRef } from "../storage/contract.ts";
import { quarantineFile } from "./quarantine.ts";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";

/** File in the folder of the repository. The name is that of earlier versions. */
const FILE = "former-tips.json";
/** Maximum number of entries: 8192 take 0.7 MB. The oldest are dropped first, and the next pruning drops their objects. */
const MAX_ENTRIES = 8192;

export interface RetainedRefsContent {
  /** Oldest first. */
  readonly tips: readonly RetainedRef[];
  /** Time of the last pruning of unreachable objects, milliseconds since the epoch; 0: never. */
  readonly prunedAt: number;
}

/**
 * Ids that refs of a repository had before. Their objects stay for a while, because clients have those commits, and a
 * reset branch is often reset back. Write it only under the fill lock of the repository.
 */
export class RetainedRefs {
  readonly #path: string;
  readonly #repository: string;

  constructor(repositoryPath: string) {
    this.#repository = repositoryPath;
    this.#path = join(repositoryPath, FILE);
  }

  /** A damaged file is quarantined and counts as empty. Then objects are dropped early, and fetched again. */
  async read(): Promise<RetainedRefsContent> {
    const content = await readSealed(this.#path);
    if (content === "damaged") await quarantineFile(this.#repository, this.#path);
    return parse(content);
  }

  async write({ tips, prunedAt }: RetainedRefsContent): Promise<void> {
    await writeSealed(this.#path, { tips: tips.slice(-MAX_ENTRIES), prunedAt });
  }

  /** Adds ids as the newest entries. */
  async add(oids: Iterable<string>, now: number): Promise<void> {
    await this.merge([...new Set(oids)].map((oid) => ({ oid, since: now })));
  }

  /** Adds entries. Of two for one id the later one stays. */
  async merge(added: readonly RetainedRef[]): Promise<void> {
    const { tips, prunedAt } = await this.read();
    const latest = new Map<string, RetainedRef>();
    for (const each of [...tips, ...added]) {
      if ((latest.get(each.oid)?.since ?? -Infinity) <= each.since) latest.set(each.oid, each);
    }
    const merged = [...latest.values()].toSorted((a, b) => a.since - b.since);
    const isSame = merged.length === tips.length && merged.every((each, at) => each === tips[at]);
    if (!isSame) await this.write({ tips: merged, prunedAt });
  }
}

function parse(value: unknown): RetainedRefsContent {
  const { tips, prunedAt } = Object(value) as Record<string, unknown>;
  return {
    tips: Array.isArray(tips) ? tips.filter(isRetained) : [],
    prunedAt: typeof prunedAt === "number" ? prunedAt : 0,
  };
}

function isRetained(value: unknown): value is RetainedRef {
  const { oid, since } = Object(value) as Record<string, unknown>;
  return typeof oid === "string" && /^[0-9a-f]{40,64}$/.test(oid) && typeof since === "number";
}
