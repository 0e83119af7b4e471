import { join } from "node:path";
import { quarantineFile } from "./quarantine.ts";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";

/** Beside the repository's `packed-refs`. */
const FILE = "former-tips.json";
/** Entries that are kept: 8192 take 0.7 MB. Beyond, the oldest are forgotten, and go with the next pruning. */
const MAX_ENTRIES = 8192;

/** A tip of before, or an object that was wanted by its id. */
export interface FormerTip {
  readonly oid: string;
  /** When the code host was seen to have another one, or none; milliseconds since the epoch. */
  readonly since: number;
}

export interface FormerTipsContent {
  /** Oldest first. */
  readonly tips: readonly FormerTip[];
  /** When objects were last removed that nothing reaches, milliseconds since the epoch; 0 = never. */
  readonly prunedAt: number;
}

/**
 * What a repository's refs pointed to before. Those objects stay for a while (`cache.prune_unreachable_after`): clients
 * stand there, and a branch that was reset is often reset back. To be written under the repository's fill lock only.
 */
export class FormerTips {
  readonly #path: string;
  readonly #repository: string;

  constructor(repositoryPath: string) {
    this.#repository = repositoryPath;
    this.#path = join(repositoryPath, FILE);
  }

  /** A damaged file is set aside and counts as none: then objects go earlier, and are fetched again. */
  async read(): Promise<FormerTipsContent> {
    const content = await readSealed(this.#path);
    if (content === "damaged") await quarantineFile(this.#repository, this.#path);
    return parse(content);
  }

  async write({ tips, prunedAt }: FormerTipsContent): Promise<void> {
    await writeSealed(this.#path, { tips: tips.slice(-MAX_ENTRIES), prunedAt });
  }

  /** Adds ids, which are then the newest. */
  async add(oids: Iterable<string>, now: number): Promise<void> {
    const added = new Set(oids);
    if (added.size === 0) return;
    const { tips, prunedAt } = await this.read();
    const kept = tips.filter(({ oid }) => !added.has(oid));
    await this.write({ tips: [...kept, ...[...added].map((oid) => ({ oid, since: now }))], prunedAt });
  }
}

function parse(value: unknown): FormerTipsContent {
  const { tips, prunedAt } = Object(value) as Record<string, unknown>;
  return {
    tips: Array.isArray(tips) ? tips.filter(isFormerTip) : [],
    prunedAt: typeof prunedAt === "number" ? prunedAt : 0,
  };
}

function isFormerTip(value: unknown): value is FormerTip {
  const { oid, since } = Object(value) as Record<string, unknown>;
  return typeof oid === "string" && /^[0-9a-f]{40,64}$/.test(oid) && typeof since === "number";
}
