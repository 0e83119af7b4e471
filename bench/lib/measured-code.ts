import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
/** Code of seeds, which runs only for clients that ask for one. */
export const SEED_CODE = [
  "apps/svc/src/cache/seeds",
  "apps/svc/src/git/seed",
  "packages/git-mirror/src/seeds",
];
/** Code that runs only where it is configured or asked for, or in other programs than ours. It counts only for a benchmark that names it. */
const OPTIONAL_CODE = [
  ...SEED_CODE,
  "apps/svc/src/cache/object-tier",
  "packages/git-protocol/src/receive-pack",
  "packages/git-store/src/http",
  "packages/git-store/src/receive",
  "packages/git-store/src/refs",
];

/** The code that a result was measured with. `npm run bench` writes it into the result. */
export interface MeasuredCode {
  /** From the root of the repository. */
  readonly folders: readonly string[];
  /** HEAD at the begin of the run. */
  readonly commit: string;
  /** Git tree of each folder in that commit. */
  readonly trees: Readonly<Record<string, string>>;
  /** Whether a file of the folders was not as committed: then nobody can tell what was measured. */
  readonly uncommitted: boolean;
}

/** State of these folders now. */
export function measuredCode(folders: readonly string[]): MeasuredCode {
  const commit = git("rev-parse", "HEAD");
  return {
    folders,
    commit,
    trees: Object.fromEntries(folders.map((folder) => [folder, git("rev-parse", `${commit}:${folder}`)])),
    uncommitted: git("status", "--porcelain", "--", ...folders) !== "",
  };
}

/** Distance of the committed code from the code of a result. */
export interface Age {
  /** Changed lines (the mean of added and removed) over all lines, without tests: 0 = the same code. */
  readonly changedShare: number;
  /** Days from the run to the newest commit that changed the code; 0 = none did. Does not grow without a commit. */
  readonly days: number;
}

/**
 * Compares a result with HEAD.
 *
 * @param measuredAt time of the run, ISO 8601. Stands for the commit where that one is not in the history of HEAD, for
 *   example because it was rebased later.
 */
export function ageOf(code: MeasuredCode, measuredAt: string): Age {
  const { folders } = code;
  const same = folders.every((folder) => treeOf("HEAD", folder) === code.trees[folder]);
  if (same) return { changedShare: 0, days: 0 };
  const base = isInHistory(code.commit)
    ? code.commit
    : git("rev-list", "-1", `--before=${measuredAt}`, "HEAD");
  const excluded = [
    "*.test.ts",
    "*.test-kit.ts",
    ...OPTIONAL_CODE.filter((folder) => !folders.includes(folder)),
  ];
  const paths = [...folders, ...excluded.map((pattern) => `:(exclude)${pattern}`)];
  const changed = numbers(git("diff", "--numstat", base, "HEAD", "--", ...paths));
  const empty = git("hash-object", "-t", "tree", "/dev/null");
  const all = numbers(git("diff", "--numstat", empty, "HEAD", "--", ...paths));
  const newest = git("log", "-1", "--format=%cI", `${base}..HEAD`, "--", ...paths);
  const days = newest === "" ? 0 : (Date.parse(newest) - Date.parse(measuredAt)) / 86_400_000;
  return { changedShare: changed / 2 / all, days: Math.max(0, days) };
}

/** Whether the history is there: not in a copy without `.git`, nor in a shallow clone. */
export function hasHistory(): boolean {
  try {
    return git("rev-parse", "--is-shallow-repository") === "false";
  } catch {
    return false;
  }
}

function isInHistory(commit: string): boolean {
  try {
    git("merge-base", "--is-ancestor", commit, "HEAD");
    return true;
  } catch {
    return false;
  }
}

/** Undefined: there is no such folder any more. */
function treeOf(commit: string, folder: string): string | undefined {
  try {
    return git("rev-parse", "--verify", "--quiet", `${commit}:${folder}`);
  } catch {
    return undefined;
  }
}

/** Sum of the added and removed lines of `git diff --numstat`; binary files count as nothing. */
function numbers(text: string): number {
  return [...text.matchAll(/^(\d+)\t(\d+)\t/gm)].reduce(
    (sum, [, added, removed]) => sum + Number(added) + Number(removed),
    0,
  );
}

function git(...args: string[]): string {
  return execFileSync("git", ["-C", ROOT, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    maxBuffer: 2 ** 28,
  }).trim();
}
