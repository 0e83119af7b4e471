import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import {
  encodeCommandRequest,
  decodeFetchRequest,
  FetchResponseWalker,
  type CommandRequest,
} from "@devplat/git-protocol";
import { GitStoreError, type ReachabilityIndex, type Repository } from "@devplat/git-store";
import { uploadPackV2Fetch } from "@devplat/git-store/upload-pack";
import { gitEnvironment, loopSeconds, tempFolder, testSeed } from "@devplat/testkit";
import { RepositoryModel, unpack } from "./git-store-model.ts";
import { Chance, randomRepository, storeOf } from "./git-store-random.ts";

const SHARE = 0.01;
const REQUESTS_PER_REPOSITORY = 25;

type Format = "sha1" | "sha256";

interface Answer {
  readonly sections: readonly string[];
  readonly acknowledgments: readonly string[];
  readonly shallowInfo: readonly string[];
  readonly wantedRefs: readonly string[];
  readonly pack: Buffer | undefined;
}

/** A client that has everything which its tips reach, within a shallow boundary or none. */
interface Client {
  readonly tips: readonly string[];
  readonly shallow: ReadonlySet<string>;
  readonly objects: ReadonlySet<string>;
}

function parseAnswer(body: Buffer): Answer {
  const lines: Record<string, string[]> = {};
  const pack: Buffer[] = [];
  const walker = new FetchResponseWalker({
    line: (section, text) => (lines[section] ??= []).push(text),
    pack: (bytes) => pack.push(Buffer.from(bytes)),
  });
  walker.push(body);
  assert.ok(walker.complete, "the answer ends with a flush-pkt");
  return {
    sections: [...walker.sections].filter((name) => name !== "packfile-uris"),
    acknowledgments: lines["acknowledgments"] ?? [],
    shallowInfo: (lines["shallow-info"] ?? []).toSorted(),
    wantedRefs: lines["wanted-refs"] ?? [],
    pack: walker.sections.has("packfile") ? Buffer.concat(pack) : undefined,
  };
}

/** Response of stock git; undefined when it refuses. */
function gitAnswer(path: string, request: CommandRequest): Answer | undefined {
  const result = spawnSync("git", ["upload-pack", "--stateless-rpc", path], {
    input: encodeCommandRequest(request),
    env: { ...gitEnvironment(), GIT_PROTOCOL: "version=2" },
    maxBuffer: 2 ** 28,
  });
  return result.status === 0 ? parseAnswer(result.stdout) : undefined;
}

async function ourAnswer(
  store: { repository: Repository; index: ReachabilityIndex },
  request: CommandRequest,
  format: Format,
): Promise<Answer | undefined> {
  const graph = store.index.acquire();
  try {
    const chunks: Buffer[] = [];
    const refs = await store.repository.refs();
    const fetch = decodeFetchRequest(request, format);
    for await (const chunk of uploadPackV2Fetch(graph, fetch, { refs })) chunks.push(chunk);
    return parseAnswer(Buffer.concat(chunks));
  } catch (error) {
    if (error instanceof GitStoreError && error.code === "unservable") return undefined;
    throw error;
  } finally {
    graph.release();
  }
}

function randomClient(model: RepositoryModel, commits: readonly string[], chance: Chance): Client {
  const tips = chance.oneIn(3) ? [] : chance.some(commits, 3);
  const shallow = new Set<string>();
  if (tips.length > 0 && chance.oneIn(2)) {
    // Every commit at this many steps from a tip, on some way to it.
    const steps = 1 + chance.below(5);
    const depth = new Map(tips.map((tip) => [tip, 1]));
    const queue = [...tips];
    for (const oid of queue) {
      const at = depth.get(oid)!;
      if (at >= steps) {
        shallow.add(oid);
        continue;
      }
      for (const parent of model.objects.get(oid)!.parents) {
        if (depth.has(parent)) continue;
        depth.set(parent, at + 1);
        queue.push(parent);
      }
    }
  }
  return { tips, shallow, objects: model.closure(tips, shallow) };
}

const FILTERS = [
  "blob:none",
  "blob:limit=0",
  "blob:limit=200",
  "blob:limit=1k",
  "tree:0",
  "tree:1",
  "tree:2",
  "tree:3",
  "object:type=commit",
  "object:type=tree",
  "object:type=blob",
  "object:type=tag",
];
/** Filters that are the code host's to answer, alone and inside `combine:`. */
const SPARSE = ["sparse:path=a", "sparse:oid=0000000000000000000000000000000000000000"];

/** A filter specification: one of the list, or several of them combined, nested now and then. */
function randomFilter(chance: Chance, nesting = 2): string {
  if (nesting === 0 || chance.oneIn(2)) return chance.oneIn(60) ? chance.pick(SPARSE) : chance.pick(FILTERS);
  return combinedFilter(chance, nesting);
}

function combinedFilter(chance: Chance, nesting: number): string {
  const part = (): string => encoded(randomFilter(chance, nesting - 1), chance);
  const parts = Array.from({ length: 1 + chance.below(4) }, part);
  return `combine:${parts.join("+")}`;
}

function isSparse(arg: string): boolean {
  let text = arg;
  while (text.includes("%")) text = decodeURIComponent(text);
  return /^filter .*sparse:/u.test(text);
}

/** A part of `combine:`. What need not be escaped is escaped now and then, in both cases of the digits. */
function encoded(spec: string, chance: Chance): string {
  return spec.replaceAll(/./gsu, (letter) => {
    const code = `%${letter.charCodeAt(0).toString(16).padStart(2, "0")}`;
    if (letter === "+" || letter === "%" || chance.oneIn(8))
      return chance.oneIn(2) ? code : code.toUpperCase();
    return letter;
  });
}

function randomRequest(
  model: RepositoryModel,
  client: Client,
  refs: readonly string[],
  chance: Chance,
  { format, combined }: Pick<Loop, "format" | "combined">,
): CommandRequest {
  const args: string[] = [];
  const commits = model.ofType("commit");
  const others = [...model.ofType("tree"), ...model.ofType("blob"), ...model.ofType("tag")];
  const wants = [
    chance.pick(commits),
    ...chance.some(commits, 2),
    ...chance.some(others, chance.oneIn(4) ? 2 : 0),
  ];
  for (const want of wants) args.push(`want ${want}`);
  if (chance.oneIn(5)) args.push(`want-ref ${chance.pick(refs)}`);
  for (const flag of ["thin-pack", "ofs-delta", "include-tag", "no-progress"]) {
    if (!chance.oneIn(3)) args.push(flag);
  }
  for (const oid of client.shallow) args.push(`shallow ${oid}`);
  if (chance.oneIn(10)) args.push(`shallow ${"2".repeat(format === "sha1" ? 40 : 64)}`);
  const kind = chance.below(client.shallow.size > 0 ? 7 : 12);
  if (kind === 0) args.push(`deepen ${1 + chance.below(6)}`);
  else if (kind === 1) args.push("deepen 2147483647");
  else if (kind === 2) args.push("deepen-relative", `deepen ${1 + chance.below(4)}`);
  else if (kind === 3) args.push(`deepen-since ${1_700_000_000 + 60 * chance.below(60)}`);
  else if (kind === 4) args.push(`deepen-not ${chance.pick(refs)}`);
  if (combined === true) args.push(`filter ${combinedFilter(chance, 2)}`);
  else if (chance.oneIn(3)) args.push(`filter ${randomFilter(chance)}`);
  if (client.tips.length > 0) {
    const known = commits.filter((oid) => client.objects.has(oid));
    const tags = model.ofType("tag").filter((oid) => client.objects.has(oid));
    for (const have of [...client.tips, ...chance.some(known, 4), ...chance.some(tags, 1)]) {
      if (!chance.oneIn(5)) args.push(`have ${have}`);
    }
    if (chance.oneIn(3)) args.push(`have ${"3".repeat(format === "sha1" ? 40 : 64)}`);
  } else if (chance.oneIn(4)) args.push(`have ${"4".repeat(format === "sha1" ? 40 : 64)}`);
  if (chance.oneIn(2)) args.push("done");
  else if (chance.oneIn(8)) args.push("wait-for-done");
  return { command: "fetch", capabilities: [`object-format=${format}`], args };
}

/** Elements of `a` that are not in `b`, with types. */
function difference(model: RepositoryModel, a: ReadonlySet<string>, b: ReadonlySet<string>): string[] {
  return [...a].filter((oid) => !b.has(oid)).map((oid) => `${model.objects.get(oid)?.type} ${oid}`);
}

/** The objects of `wanted-refs`. */
function refsOf(answer: Answer): string[] {
  return answer.wantedRefs.map((line) => line.split(" ")[0]!);
}

/** Compares one response of the store with git's response and with the model. */
function compare(
  model: RepositoryModel,
  client: Client,
  request: CommandRequest,
  format: Format,
  git: Answer,
  ours: Answer,
): void {
  assert.deepEqual(ours.sections.toSorted(), git.sections.toSorted(), "the same sections");
  assert.deepEqual(ours.acknowledgments, git.acknowledgments, "the same ACK sequence");
  assert.deepEqual(ours.shallowInfo, git.shallowInfo, "the same shallow-info");
  assert.deepEqual(ours.wantedRefs, git.wantedRefs, "the same wanted-refs");
  if (git.pack === undefined || ours.pack === undefined) return;

  const fetch = decodeFetchRequest(request, format);
  const atClient = (oid: string) => (client.objects.has(oid) ? model.objects.get(oid) : undefined);
  const our = unpack(ours.pack, format, atClient);
  const theirs = unpack(git.pack, format, atClient);
  if (!fetch.thinPack) assert.equal(our.foreignBases.size, 0, "no foreign base without thin-pack");
  if (!fetch.ofsDelta) assert.equal(our.ofsDeltas, 0, "no ofs-delta without the client's word");

  const unshallow = ours.shallowInfo
    .filter((line) => line.startsWith("unshallow "))
    .map((line) => line.slice(10));
  const common = fetch.haves.filter((oid) => model.objects.has(oid));
  const known = model.closure([...common, ...unshallow], client.shallow);
  const wantedAnyway = model.closure([...fetch.wants, ...refsOf(ours)], model.commits);
  // Git sends some objects again that the client has, and with include-tag the tags of those commits.
  const isNeeded = (oid: string): boolean =>
    !known.has(oid) &&
    (wantedAnyway.has(oid) || model.objects.get(oid)!.type !== "tag" || our.oids.has(model.peel(oid)));
  const needed = new Set([...theirs.oids].filter(isNeeded));
  assert.deepEqual(
    difference(model, needed, our.oids),
    [],
    "nothing is missing that git sends and the client lacks",
  );
  const isTree = (oid: string): boolean => model.objects.get(oid)!.type === "tree";
  const filter = fetch.filter ?? "";
  const isWanted = (oid: string): boolean => fetch.wants.includes(oid) || refsOf(ours).includes(oid);
  const isExact = !(/^(?:tree:0|object)/u.test(filter) && fetch.wants.some(isTree));
  if (isExact) {
    // A wanted id is sent, even if the filter excludes it. Git forgets that where its walk came to it in another
    // way first, but not where it has bitmaps.
    const wanted = new Set(fetch.wants.map((oid) => model.peel(oid)));
    const sent = new Set(
      [...our.oids].filter((oid) => needed.has(oid) || !(isWanted(oid) || wanted.has(oid))),
    );
    assert.deepEqual(
      difference(model, sent, needed),
      [],
      "nothing is sent that the client has or git leaves out",
    );
  }

  if (fetch.filter === undefined) {
    const cut = new Set(client.shallow);
    for (const line of ours.shallowInfo) {
      const [word, oid] = line.split(" ") as [string, string];
      if (word === "shallow") cut.add(oid);
      else cut.delete(oid);
    }
    const wanted = [...fetch.wants, ...refsOf(ours)];
    const has = new Set([...client.objects, ...our.oids]);
    assert.deepEqual(
      difference(model, model.closure(wanted, cut), has),
      [],
      "the client has all that it wanted",
    );
  }
}

interface Loop {
  readonly format: Format;
  /** Files of more than half a megabyte, whose entries are larger than what is looked at in one go. */
  readonly large: boolean;
  /** Every request has a filter of several that are combined. Default false. */
  readonly combined?: boolean;
  readonly seconds: number;
}

/** Compares random requests to random repositories until the time is over, at least those of one repository. */
async function assertAlikeAtRandom(loop: Loop): Promise<string> {
  const { format } = loop;
  const deadline = performance.now() + loop.seconds * 1000;
  const firstSeed = testSeed();
  let requests = 0;
  let packs = 0;
  let built = 0;
  do {
    const seed = (firstSeed + built++) % 2 ** 31;
    const chance = new Chance(seed);
    const folder = await tempFolder("git-store-");
    try {
      const path = join(folder.path, "full.git");
      await randomRepository(path, chance, format, { large: loop.large });
      const model = new RepositoryModel(path, format);
      const store = await storeOf(path, join(folder.path, "store.git"), chance, format);
      const refs = [...(await store.repository.refs()).keys()];
      try {
        for (let n = 0; n < REQUESTS_PER_REPOSITORY; n++) {
          const client = randomClient(model, model.ofType("commit"), chance);
          const request = randomRequest(model, client, refs, chance, loop);
          const theirs = gitAnswer(path, request);
          try {
            const ours = await ourAnswer(store, request, format);
            if (request.args.some(isSparse)) {
              assert.equal(ours, undefined, "a sparse filter is not served");
              continue;
            }
            assert.equal(ours === undefined, theirs === undefined, "both serve, or neither");
            requests++;
            if (ours === undefined || theirs === undefined) continue;
            if (ours.pack !== undefined) packs++;
            compare(model, client, request, format, theirs, ours);
          } catch (error) {
            throw new Error(`TEST_SEED=${seed} request ${n}\n${request.args.join("\n")}`, { cause: error });
          }
        }
      } finally {
        store.index.close();
        store.repository.close();
      }
    } finally {
      await folder.remove();
    }
  } while (performance.now() < deadline);
  assert.ok(packs > 0);
  return `${built} repositories, ${requests} requests, ${packs} packs, first seed ${firstSeed}`;
}

const LOOPS: readonly (Omit<Loop, "seconds"> & { readonly share: number })[] = [
  { format: "sha1", large: false, share: SHARE * 0.4 },
  { format: "sha1", large: false, combined: true, share: SHARE * 0.2 },
  { format: "sha256", large: false, share: SHARE * 0.2 },
  { format: "sha1", large: true, share: SHARE * 0.2 },
];
for (const { share, ...loop } of LOOPS) {
  const files = loop.combined === true ? "combined filters" : loop.large ? "large files" : "small files";
  test(`uploadPackV2Fetch matches git upload-pack at random (${loop.format}, ${files})`, async (t) => {
    t.diagnostic(await assertAlikeAtRandom({ ...loop, seconds: loopSeconds(share) }));
  });
}
