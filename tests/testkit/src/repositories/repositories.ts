import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gitEnvironment } from "../git-environment.ts";
import { git } from "../process.ts";
import { finish, History, initialise, type Mark, type ObjectFormat } from "./history.ts";
import { Random } from "./random.ts";

export interface RepositoryOptions {
  /** Equal seeds give equal object ids. Default 1. */
  readonly seed?: number;
  /** Default `sha1`. */
  readonly objectFormat?: ObjectFormat;
}

export interface LinearOptions extends RepositoryOptions {
  /** Default 20. */
  readonly commits?: number;
  /** Files in the tree, spread over nested folders. Default 8. */
  readonly files?: number;
}

const MAIN = "refs/heads/main";

/** One branch, each commit changes one of a few files. */
export async function linear(dir: string, options: LinearOptions = {}): Promise<void> {
  const random = new Random(options.seed ?? 1);
  const files = options.files ?? 8;
  const history = new History();
  const texts = Array.from({ length: files }, () => random.text(40));
  const tree = Object.fromEntries(texts.map((text, at) => [pathOf(at), text]));
  history.commit({ ref: MAIN, message: "Begin\n", files: { "README.md": "# Sample\n", ...tree } });
  for (let n = 1; n < (options.commits ?? 20); n++) {
    const at = random.below(files);
    texts[at] = changed(texts[at] ?? "", random);
    history.commit({ ref: MAIN, files: { [pathOf(at)]: texts[at] } });
  }
  await build(dir, history, options.objectFormat);
}

/** Branches that meet again: plain merges, criss-cross merges, and one merge of three. */
export async function merges(
  dir: string,
  options: RepositoryOptions & { rounds?: number } = {},
): Promise<void> {
  const random = new Random(options.seed ?? 1);
  const history = new History();
  let left: Mark = history.commit({ ref: MAIN, files: { "left.txt": random.text(20) } });
  let right: Mark = history.commit({
    ref: "refs/heads/side",
    parents: [left],
    files: { "right.txt": random.text(20) },
  });
  for (let round = 0; round < (options.rounds ?? 5); round++) {
    const a = history.commit({ ref: MAIN, parents: [left], files: { "left.txt": random.text(20) } });
    const b = history.commit({
      ref: "refs/heads/side",
      parents: [right],
      files: { "right.txt": random.text(20) },
    });
    left = history.commit({ ref: MAIN, message: "Merge side\n", parents: [a, b] });
    right = history.commit({ ref: "refs/heads/side", message: "Merge main\n", parents: [b, a] });
  }
  const third = history.commit({
    ref: "refs/heads/third",
    parents: [right],
    files: { "third.txt": random.text(5) },
  });
  history.commit({ ref: MAIN, message: "Merge three\n", parents: [left, right, third] });
  await build(dir, history, options.objectFormat);
}

/** Lightweight and annotated tags, a tag of a tag, and tags of a tree and of a blob. */
export async function tags(dir: string, options: RepositoryOptions & { tags?: number } = {}): Promise<void> {
  const random = new Random(options.seed ?? 1);
  const history = new History();
  for (let n = 0; n < (options.tags ?? 10); n++) {
    const commit = history.commit({ ref: MAIN, files: { "file.txt": random.text(20) } });
    if (n % 2 === 0) history.tag(`v${n}`, commit);
    else history.ref(`refs/tags/light-${n}`, commit);
  }
  await initialise(dir, options.objectFormat);
  await history.import(dir);
  const dates = { env: gitEnvironment({ GIT_COMMITTER_DATE: "1800000000 +0000" }) };
  await git(["-C", dir, "tag", "-a", "-m", "Tag of a tag", "nested", "v0"], dates);
  await git(["-C", dir, "tag", "-a", "-m", "Tag of a tree", "tree", "main^{tree}"], dates);
  await git(["-C", dir, "tag", "blob", "main:file.txt"]);
  await finish(dir);
}

/** Many branches, tags and pull-request refs over a short history. */
export async function manyRefs(
  dir: string,
  options: RepositoryOptions & { refs?: number } = {},
): Promise<void> {
  const random = new Random(options.seed ?? 1);
  const history = new History();
  for (let n = 0; n < 10; n++) history.commit({ ref: MAIN, files: { "file.txt": random.text(10) } });
  await build(dir, history, options.objectFormat);
  const commits = (await git(["-C", dir, "rev-list", "main"])).split("\n");
  const names = [MAIN, ...Array.from({ length: (options.refs ?? 2000) - 1 }, (_, at) => refName(at + 1))];
  // Written as git packs them (gitrepository-layout(5)): thousands of loose files would take seconds.
  const lines = names
    .toSorted()
    .map((name, at) => `${name === MAIN ? commits[0] : commits[at % commits.length]} ${name}\n`);
  await writeFile(
    join(dir, "packed-refs"),
    `# pack-refs with: peeled fully-peeled sorted \n${lines.join("")}`,
  );
  await git(["-C", dir, "update-server-info"]);
}

function refName(n: number): string {
  if (n % 3 === 0) return `refs/heads/topic/${n}`;
  return n % 3 === 1 ? `refs/tags/build-${n}` : `refs/pull/${n}/head`;
}

/** {@link linear} with SHA-256 object ids. */
export function sha256(dir: string, options: LinearOptions = {}): Promise<void> {
  return linear(dir, { ...options, objectFormat: "sha256" });
}

/** A tree with a link to a commit of another repository, and the `.gitmodules` with its address. */
export async function submodules(
  dir: string,
  options: RepositoryOptions & { url?: string; commit?: string } = {},
): Promise<void> {
  const width = options.objectFormat === "sha256" ? 64 : 40;
  const commit = options.commit ?? "1".repeat(width);
  const url = options.url ?? "../library.git";
  const history = new History();
  history.commit({ ref: MAIN, files: { "README.md": "# With a submodule\n" } });
  history.commit({
    ref: MAIN,
    message: "Add the library\n",
    files: {
      ".gitmodules": `[submodule "library"]\n\tpath = library\n\turl = ${url}\n`,
      library: { submodule: commit },
    },
  });
  await build(dir, history, options.objectFormat);
}

/** A few blobs of random bytes: a pack of a known minimum size. Default 3 blobs of 1 MiB. */
export async function bigBlobs(
  dir: string,
  options: RepositoryOptions & { blobs?: number; bytes?: number } = {},
): Promise<void> {
  const random = new Random(options.seed ?? 1);
  const history = new History();
  for (let n = 0; n < (options.blobs ?? 3); n++) {
    history.commit({ ref: MAIN, files: { [`big-${n}.bin`]: random.bytes(options.bytes ?? 2 ** 20) } });
  }
  await build(dir, history, options.objectFormat);
}

/** No commit; HEAD names a branch that is not born. */
export async function empty(dir: string, options: RepositoryOptions = {}): Promise<void> {
  await initialise(dir, options.objectFormat);
  await git(["-C", dir, "update-server-info"]);
}

/** Adds commits to a branch of an existing repository, as a push of another client does. */
export async function append(
  dir: string,
  options: { branch?: string; commits?: number; seed?: number } = {},
): Promise<void> {
  const ref = `refs/heads/${options.branch ?? "main"}`;
  const tip = await git(["-C", dir, "rev-parse", ref]);
  const second = Number(await git(["-C", dir, "log", "-1", "--format=%ct", tip]));
  const random = new Random(options.seed ?? second);
  const history = new History(second);
  let parent: Mark | string = tip;
  for (let n = 0; n < (options.commits ?? 1); n++) {
    parent = history.commit({ ref, parents: [parent], files: { "appended.txt": random.text(10) } });
  }
  await history.import(dir);
  await git(["-C", dir, "update-server-info"]);
}

async function build(dir: string, history: History, objectFormat?: ObjectFormat): Promise<void> {
  await initialise(dir, objectFormat);
  await history.import(dir);
  await finish(dir);
}

function pathOf(at: number): string {
  return at % 3 === 0 ? `file-${at}.txt` : `folder-${at % 3}/inner-${at % 2}/file-${at}.txt`;
}

/** One line of the text replaced, so that deltas pay. */
function changed(text: string, random: Random): string {
  const lines = text.split("\n");
  lines[random.below(lines.length)] = random.text(1).trimEnd();
  return lines.join("\n");
}
