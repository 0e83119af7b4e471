import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EMPTY_FETCH, encodeCommandRequest, encodeFetchRequest } from "@devplat/git-protocol";
import { git, gitEnvironment, run, type CodeHostProcess, type Svc } from "@devplat/testkit";
import { inBackground } from "./background.ts";
import { HEADERS } from "./raw-fetch.ts";

const CAPABILITIES = ["agent=git/bench", "object-format=sha1"];
const TIMEOUT_MS = 600_000;
const AUTHOR = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];

/** Where the clones of an overload come from. */
export interface OverloadStand {
  readonly svc: Svc;
  readonly codeHost: CodeHostProcess;
  /** `owner/name.git` at the code host. */
  readonly path: string;
  readonly work: string;
}

/** Makes commits without changes on top of a branch, each with a branch of its own. @returns their ids */
export async function addCommits(repository: string, count: number): Promise<string[]> {
  const oids: string[] = [];
  let parent = await git(["-C", repository, "rev-parse", "HEAD"]);
  for (let at = 0; at < count; at++) {
    const tree = `${parent}^{tree}`;
    parent = await git(["-C", repository, ...AUTHOR, "commit-tree", "-p", parent, "-m", `${at}`, tree]);
    await git(["-C", repository, "branch", branchOf(at), parent]);
    oids.push(parent);
  }
  return oids;
}

function branchOf(at: number): string {
  return `overload-${at}`;
}

/** Body of a `fetch` that ends with `done`. */
export function fetchBody(want: string, have: string): Buffer {
  const request = {
    ...EMPTY_FETCH,
    wants: [want],
    haves: [have],
    done: true,
    ofsDelta: true,
    thinPack: true,
  };
  return encodeCommandRequest(encodeFetchRequest({ ...request, noProgress: true }, CAPABILITIES));
}

/** Clones at the same time. */
export interface Overload {
  /** Clones by curl. Each has one invented `have`, so that each needs a response of its own. */
  readonly raw: readonly string[];
  /** Clones by stock git. */
  readonly stock: number;
  /** Distinguishes the invented objects of this run. */
  readonly run: string;
  /** Whether the clients only get CPU time that nothing else needs. */
  readonly background: boolean;
}

/** Runs all clones to their end. @throws Error if one of them is refused, ends early, or has fewer bytes than the first */
export async function overload(
  { svc, path, work }: OverloadStand,
  { raw, stock, run: mark, background }: Overload,
): Promise<void> {
  const url = `${svc.url}/${path}`;
  const started = (command: string, args: readonly string[]): [string, readonly string[]] =>
    background ? inBackground(command, args) : [command, args];
  const entries: string[] = [];
  for (const [at, want] of raw.entries()) {
    const body = join(work, `clone-${at}`);
    await writeFile(body, fetchBody(want, `${mark}${at.toString(16)}`.padStart(40, "f")));
    const headers = HEADERS.map((header) => `header = "${header}"`);
    const report = String.raw`write-out = "%{http_code} %{size_download}\n"`;
    const target = `url = "${url}/git-upload-pack"`;
    entries.push([target, 'output = "/dev/null"', report, `data-binary = "@${body}"`, ...headers].join("\n"));
  }
  const config = join(work, "overload.curl");
  await writeFile(config, entries.join("\nnext\n"));
  const clones = Array.from({ length: stock }, async (_, at) => {
    const args = ["clone", "-q", "--bare", "--single-branch", "-b", branchOf(at), url];
    const folder = join(work, `stock-${mark}-${at}`);
    return run(...started("git", [...args, folder]), {
      env: { ...process.env, ...gitEnvironment() },
      timeoutMs: TIMEOUT_MS,
    });
  });
  const count = String(raw.length);
  const curl = ["-sS", "-Z", "--parallel-immediate", "--parallel-max", count, "-K", config];
  const { code, stdout, stderr } = await run(...started("curl", curl), { timeoutMs: TIMEOUT_MS });
  for (const clone of await Promise.all(clones))
    if (clone.code !== 0) throw new Error(`git clone ended with ${clone.code}: ${clone.stderr}`);
  const lines = stdout.trim().split("\n");
  const sizes = lines.map((line) => Number(/^200 (\d+)$/.exec(line)?.[1]));
  const [first = Number.NaN] = sizes;
  // The commits on top of the shared history differ by a few hundred bytes.
  const isWhole = (size: number): boolean => Math.abs(size - first) < first / 1000;
  if (code !== 0 || lines.length !== raw.length || !sizes.every(isWhole))
    throw new Error(`not every clone was served: curl ended with ${code}, ${lines.join(", ")} ${stderr}`);
}
