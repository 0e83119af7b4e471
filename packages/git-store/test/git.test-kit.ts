import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomFrom } from "@devplat/testkit/random";

/** Environment for stock git: no user or system configuration, fixed dates. */
const ENVIRONMENT = {
  PATH: process.env["PATH"],
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@example.org",
  GIT_AUTHOR_DATE: "1700000000 +0100",
  GIT_COMMITTER_NAME: "C",
  GIT_COMMITTER_EMAIL: "c@example.org",
  GIT_COMMITTER_DATE: "1700000001 +0000",
  LC_ALL: "C",
};

/** Runs stock git. @throws when it fails, with its standard error */
export function git(folder: string, args: readonly string[], input?: Uint8Array | string): Buffer {
  const result = tryGit(folder, args, input);
  if (result.status !== 0) throw new Error(`git ${args.join(" ")} in ${folder}: ${result.stderr}`);
  return result.stdout;
}

/** Runs stock git and returns its result, also after a failure. */
export function tryGit(
  folder: string,
  args: readonly string[],
  input?: Uint8Array | string,
): { status: number | null; stdout: Buffer; stderr: string } {
  const result = spawnSync("git", args, {
    cwd: folder,
    env: ENVIRONMENT,
    maxBuffer: 2 ** 30,
    ...(input === undefined ? {} : { input }),
  });
  // Git closes its input early when it refuses the content.
  const { status, error } = result;
  const refused = status !== null && error !== undefined && "code" in error && error.code === "EPIPE";
  if (error !== undefined && !refused) throw error;
  return { status, stdout: result.stdout, stderr: result.stderr.toString() };
}

/** A folder that is removed at the end of its `using` block. */
export function temporaryFolder(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "git-store-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Options of {@link historyScript}. */
export interface HistoryOptions {
  readonly seed?: number;
  readonly commits?: number;
  readonly files?: number;
}

/** Input for `git fast-import`: a history whose files change line by line, so that packs contain delta chains. */
function historyScript(options: HistoryOptions = {}): string {
  const random = randomFrom(options.seed ?? 1);
  const files = options.files ?? 12;
  const word = (): string => Math.floor(random() * 2 ** 32).toString(36);
  const contents = Array.from({ length: files }, () =>
    Array.from({ length: 60 }, () => `${word()} ${word()}`),
  );
  const out: string[] = [];
  const commits = options.commits ?? 40;
  for (let c = 0; c < commits; c++) {
    out.push(
      `commit refs/heads/main`,
      `mark :${c + 1}`,
      `committer C <c@example.org> ${1700000000 + c} +0000`,
    );
    const message = `commit ${c} ${word()}`;
    out.push(`data ${message.length}`, message);
    if (c > 0) out.push(`from :${c}`);
    if (c > 10 && c % 7 === 0) out.push(`merge :${c - 9}`);
    const changes = c === 0 ? files : 3;
    for (let i = 0; i < changes; i++) {
      const f = c === 0 ? i : Math.floor(random() * files);
      contents[f]![Math.floor(random() * 60)] = word();
      const text = contents[f]!.join("\n");
      out.push(`M 100644 inline dir${f % 3}/file${f}.txt`, `data ${text.length}`, text);
    }
  }
  out.push("reset refs/tags/light", `from :${Math.min(5, commits)}`, "");
  out.push(
    "tag v1",
    `from :${Math.min(9, commits)}`,
    "tagger T <t@example.org> 1700000100 +0000",
    "data 4",
    "v1 1",
    "",
  );
  return out.join("\n");
}

/** Repositories that were built before, by format and options: git takes most of these tests' time. */
const built = new Map<string, string>();

/** Creates a bare repository with that history in one pack. The second one of equal options is a copy of the first. */
export function buildRepository(
  folder: string,
  format: "sha1" | "sha256" = "sha1",
  options: HistoryOptions = {},
): string {
  const path = join(folder, `${format}.git`);
  const key = JSON.stringify([format, options.seed, options.commits, options.files]);
  const model = built.get(key);
  if (model !== undefined) {
    cpSync(model, path, { recursive: true, preserveTimestamps: true });
    return path;
  }
  git(folder, ["init", "-q", "--bare", "-b", "main", `--object-format=${format}`, "--template=", path]);
  writeFileSync(join(path, "description"), "test\n");
  git(path, ["fast-import", "--quiet"], historyScript(options));
  git(path, ["-c", "pack.threads=1", "repack", "-adfq", "--depth=20", "--window=20"]);
  const kept = mkdtempSync(join(tmpdir(), "git-store-model-"));
  if (built.size === 0) process.once("exit", removeModels);
  built.set(key, kept);
  cpSync(path, kept, { recursive: true, preserveTimestamps: true });
  return path;
}

function removeModels(): void {
  for (const path of built.values()) rmSync(path, { recursive: true, force: true });
}

/** Lists every object of a repository as `oid type size`. */
export function allObjects(path: string): { oid: string; type: string; size: number }[] {
  return git(path, ["cat-file", "--batch-all-objects", "--batch-check"])
    .toString()
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [oid, type, size] = line.split(" ");
      return { oid: oid!, type: type!, size: Number(size) };
    });
}
