import { git, gitEnvironment, History, run, type Mark } from "@devplat/testkit";
import { Repository, ReachabilityIndex } from "@devplat/git-store";

/** Deterministic choices. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit);
  }

  /** Bytes that do not compress. */
  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length);
    for (let i = 0; i + 4 <= length; i += 4) bytes.writeUInt32LE(this.below(2 ** 32), i);
    return bytes;
  }

  /** True in one of `n` cases. */
  oneIn(n: number): boolean {
    return this.below(n) === 0;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)]!;
  }

  some<T>(from: readonly T[], most: number): T[] {
    if (from.length === 0) return [];
    return Array.from({ length: this.below(most + 1) }, () => this.pick(from));
  }
}

/** A random history: several roots, merges of up to four, renames, emptied folders, submodules, tags of tags' commits. */
export async function randomRepository(
  path: string,
  chance: Chance,
  format: "sha1" | "sha256",
  options: { readonly large?: boolean } = {},
): Promise<void> {
  await git(["init", "-q", "--bare", "-b", "main", "--template=", `--object-format=${format}`, path]);
  for (const setting of [
    "fastimport.unpackLimit=0",
    "uploadpack.allowFilter=true",
    "uploadpack.allowRefInWant=true",
    "uploadpack.allowSidebandAll=true",
  ]) {
    await git(["-C", path, "config", ...setting.split("=")]);
  }
  const history = new History();
  const commits: Mark[] = [];
  const word = (): string => chance.below(2 ** 30).toString(36);
  const text = (): string => Array.from({ length: 4 + chance.below(60) }, word).join("\n");
  const contents = Array.from({ length: 6 }, text);
  const count = 3 + chance.below(options.large === true ? 12 : 40);
  const blob = options.large === true ? chance.bytes(600_000) : Buffer.alloc(0);
  for (let n = 0; n < count; n++) {
    const files: Record<string, string | Buffer | null | { submodule: string }> = {};
    if (options.large === true && chance.oneIn(3)) {
      // Half of it is new each time, so that deltas are large, too.
      chance.bytes(300_000).copy(blob, chance.below(2) * 300_000);
      files["large"] = Buffer.from(blob);
    }
    for (let changes = 1 + chance.below(3); changes > 0; changes--) {
      const file = chance.below(contents.length);
      const folder = chance.pick(["", "a/", "a/b/", "c/", "c/d/e/"]);
      if (chance.oneIn(6)) {
        files[`${folder}f${file}`] = null;
        if (chance.oneIn(2)) files[`${chance.pick(["x/", "a/"])}r${file}`] = contents[file]!;
      } else {
        const lines = contents[file]!.split("\n");
        lines[chance.below(lines.length)] = word();
        contents[file] = lines.join("\n");
        files[`${folder}f${file}`] = contents[file];
      }
    }
    if (chance.oneIn(10)) files["module"] = { submodule: "1".repeat(format === "sha1" ? 40 : 64) };
    const isRoot = n === 0 || chance.oneIn(12);
    const parents = isRoot ? [] : [chance.oneIn(3) ? chance.pick(commits) : commits.at(-1)!];
    if (!isRoot && chance.oneIn(4)) {
      for (const more of chance.some(commits, 3)) if (!parents.includes(more)) parents.push(more);
    }
    const commit = history.commit({ ref: "refs/heads/work", files, parents });
    commits.push(commit);
    if (chance.oneIn(6)) history.tag(`t${n}`, commit);
    if (chance.oneIn(8)) history.ref(`refs/heads/b${n}`, commit);
    if (chance.oneIn(15)) history.ref(`refs/tags/light${n}`, commit);
  }
  history.ref("refs/heads/main", commits.at(-1)!);
  await history.import(path);
  if (chance.oneIn(2))
    await git([
      "-C",
      path,
      "-c",
      "user.name=C",
      "-c",
      "user.email=c@example.test",
      "tag",
      "-a",
      "-m",
      "of a tag",
      "nested",
      await anyTag(path),
    ]);
  await git(["-C", path, "repack", "-adq", "--depth=10", "--window=10"]);
}

async function anyTag(path: string): Promise<string> {
  const tags = (await git(["-C", path, "tag", "-l", "t*"])).split("\n");
  return tags[0] === "" ? "main" : tags[0]!;
}

/**
 * The same objects and refs in a git store, received in up to three packs of which the later are thin; with bitmaps for
 * all tips, some, or none.
 */
export async function storeOf(
  path: string,
  storePath: string,
  chance: Chance,
  format: "sha1" | "sha256",
): Promise<{ repository: Repository; index: ReachabilityIndex }> {
  let repository = await Repository.init(storePath, { format });
  let index = ReachabilityIndex.open(repository.objects);
  const tips = (await git(["-C", path, "for-each-ref", "--format=%(objectname) %(refname)"]))
    .trim()
    .split("\n");
  const oids = tips.map((line) => line.split(" ")[0]!);
  const stages = [oids];
  for (let extra = chance.below(3); extra > 0; extra--) stages.unshift([chance.pick(oids)]);
  let known: string[] = [];
  for (const stage of stages) {
    const input = `${[...stage, ...known.map((oid) => `^${oid}`)].join("\n")}\n`;
    const offsets = chance.oneIn(3) ? [] : ["--delta-base-offset"];
    const packed = await run(
      "git",
      ["-C", path, "pack-objects", "-q", "--revs", "--thin", "--stdout", ...offsets],
      { input, env: gitEnvironment() },
    );
    if (packed.code !== 0) throw new Error(packed.stderr);
    await repository.receivePack(oneChunk(packed.stdoutBytes), { threads: 0 });
    index.refresh();
    if (!chance.oneIn(3))
      await index.cover(chance.oneIn(2) ? stage : stage.slice(0, 2), { history: chance.oneIn(2) });
    known = [...known, ...stage];
    if (chance.oneIn(2)) await index.persist();
    if (chance.oneIn(3)) {
      index.close();
      repository.close();
      repository = await Repository.open(storePath);
      index = ReachabilityIndex.open(repository.objects);
    }
  }
  await repository.replaceRefs(
    tips.map((line) => {
      const [oid, name] = line.split(" ") as [string, string];
      return { oid, name };
    }),
  );
  return { repository, index };
}

async function* oneChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
