import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { git, gitEnvironment, run, tempFolder, type AddRepositoryOptions } from "@devplat/testkit";
import { HOST_TOKEN, startAdminStand, type AdminStand } from "../svc-admin-stand.ts";
import type { Row } from "./table.ts";

/** Where a client works: through the service for the first time, again from another folder, or past it. */
export interface Place {
  readonly way: "first" | "second" | "direct";
  /** Address of the repository, without credentials. */
  readonly url: string;
  /** Where the clone goes; not there at the first stage. */
  readonly folder: string;
}

/** One step of a case: what changes at the code host, then what the client does. */
export interface Stage {
  /** @param bare the folder of the repository at the code host */
  readonly change?: (bare: string, stand: ClientStand) => Promise<unknown>;
  readonly act: (place: Place, stand: ClientStand) => Promise<unknown>;
  /** Content that must be equal everywhere afterwards. Default: {@link wholeContent}. */
  readonly see?: (place: Place) => Promise<string>;
}

/** A row of the table with the steps that prove it. */
export interface Case {
  readonly row: Row;
  readonly repository: AddRepositoryOptions;
  readonly stages: readonly Stage[];
  /** Run before the repository is built. */
  readonly before?: (stand: ClientStand) => Promise<void>;
}

/** The code host and the service of {@link startAdminStand}, with folders for clones. */
export interface ClientStand extends AdminStand {
  /** Adds a repository of `org` to the code host and to the cached ones; gives its folder. */
  add(name: string, options: AddRepositoryOptions): Promise<string>;
  /** Runs the stages of a case at three places and compares its row with the result. */
  assertRow(given: Case): Promise<void>;
}

/** How long the code host has to be left alone before the service counts as having nothing to do behind. */
const QUIET_MS = 250;
/** The wait for a fill ends after this time, also on a loaded machine. */
const FILL_LIMIT_MS = 20_000;

export async function startClientStand(): Promise<ClientStand> {
  // As GitHub, which does not offer ref-in-want.
  const base = await startAdminStand({}, { refInWant: false });
  const folder = await tempFolder("clients");
  let cases = 0;

  const add = async (name: string, options: AddRepositoryOptions): Promise<string> => {
    const { path } = await base.host.addRepository("org", name, options);
    const { status } = await base.call("POST", "/api/cached-repos", { owner: "org", name });
    assert.equal(status, 201);
    return path;
  };

  /**
   * A background fill or warming of the service must not be taken for a client's fetch.
   * @param filled the repository that is filled behind its first fetch
   */
  const quiet = async (filled: string | undefined): Promise<void> => {
    if (filled !== undefined) {
      const store = join(base.svc.dataDir, "cache", "org", `${filled}.git`);
      const deadline = performance.now() + FILL_LIMIT_MS;
      while (performance.now() < deadline) {
        // Refs are written last, after the check of the pack: its thread gives way to other programs.
        const refs = await run("git", ["-C", store, "for-each-ref", "--count=1"], { env: gitEnvironment() });
        if (refs.stdout !== "") break;
        await sleep(QUIET_MS / 10);
      }
    }
    for (let seen = -1; seen !== base.host.calls.length; await sleep(QUIET_MS)) {
      seen = base.host.calls.length;
    }
  };

  const stand: ClientStand = {
    ...base,
    add,
    async assertRow({ row, repository, stages, before }) {
      const name = `case-${++cases}`;
      await before?.(stand);
      const bare = await add(name, repository);
      const places: Place[] = (["first", "second", "direct"] as const).map((way) => ({
        way,
        url: `${way === "direct" ? base.host.url : base.svc.url}/org/${name}.git`,
        folder: join(folder.path, `${name}-${way}`),
      }));
      const begun = base.host.calls.length;
      let hits = 0;
      for (const [at, stage] of stages.entries()) {
        await stage.change?.(bare, stand);
        const seen: string[] = [];
        for (const place of places) {
          // Nothing is filled behind a stage without a fetch, such as `git init`.
          const isFetched = base.host.calls.slice(begun).some(({ command }) => command === "fetch");
          if (place.way === "second") await quiet(row.second === "hit" && isFetched ? name : undefined);
          const earlier = place.way === "second" ? await outcomes(base.svc.metricsUrl, name) : {};
          const calls = base.host.calls.length;
          try {
            await stage.act(place, stand);
          } catch (error) {
            const log = place.way === "direct" ? "" : logOf(base.svc.log(), name);
            throw new Error(`stage ${at + 1}, ${place.way}; the log of svc:\n${log}`, { cause: error });
          }
          seen.push(await (stage.see ?? wholeContent)(place));
          if (place.way !== "second") continue;
          const now = await outcomes(base.svc.metricsUrl, name);
          const fetches = base.host.calls.slice(calls).filter(({ command }) => command === "fetch");
          hits += now["hit"] ?? 0;
          const found = Object.keys(now).filter((result) => (now[result] ?? 0) > (earlier[result] ?? 0));
          assert.deepEqual(
            found.filter((result) => result !== row.second),
            [],
            `outcomes of stage ${at + 1} the second time; its log:\n${logOf(base.svc.log(), name)}`,
          );
          if (row.second !== "passthrough") {
            assert.equal(fetches.length, 0, `fetches from the code host in stage ${at + 1} the second time`);
          }
        }
        assert.equal(seen[0], seen[2], `what stage ${at + 1} gave the first time, and directly`);
        assert.equal(seen[1], seen[2], `what stage ${at + 1} gave the second time, and directly`);
      }
      if (row.second === "hit") assert.ok(hits > 0, "no hit at all");
    },
    async stop() {
      await base.stop();
      await folder.remove();
    },
  };
  return stand;
}

/** The last lines of the service's log that name a repository. */
function logOf(log: string, name: string): string {
  return log
    .split("\n")
    .filter((line) => line.includes(`org/${name}`))
    .slice(-4)
    .join("\n");
}

/** The outcomes of a repository's requests so far. */
async function outcomes(metricsUrl: string, name: string): Promise<Record<string, number>> {
  const text = await (await fetch(metricsUrl)).text();
  const series = new RegExp(
    `^svc_cache_request_total\\{owner="org",repo="${name}",result="(\\w+)"\\} (\\d+)$`,
    "gm",
  );
  return Object.fromEntries(
    [...text.matchAll(series)].map(([, result = "", count]) => [result, Number(count)]),
  );
}

/** Every reference and every object of a clone; `git fsck` finds nothing. */
export async function wholeContent({ folder }: Place): Promise<string> {
  return content(folder, () => true);
}

/** Like {@link wholeContent}, but only the references that came from the remote: clients differ in their own ones. */
export async function remoteContent({ folder }: Place): Promise<string> {
  return content(
    folder,
    (name) =>
      (name.startsWith("refs/remotes/origin/") && !name.endsWith("/HEAD")) || name.startsWith("refs/tags/"),
  );
}

async function content(folder: string, take: (ref: string) => boolean): Promise<string> {
  const refs = (await git(["-C", folder, "for-each-ref", "--format=%(refname) %(objectname)"])).split("\n");
  const objects = await git(["-C", folder, "cat-file", "--batch-all-objects", "--batch-check"]);
  const complaints = await git([
    "-C",
    folder,
    "fsck",
    "--full",
    "--strict",
    "--no-dangling",
    "--no-progress",
  ]);
  assert.equal(complaints, "");
  return `${refs.filter((line) => take(line.split(" ")[0] ?? "")).join("\n")}\n${objects}`;
}

/** An address with the credential in it, as stock git takes it. */
export function withAccount(url: string, token: string): string {
  return url.replace("://", `://x-access-token:${token}@`);
}

/** The same credential for a direct clone. */
export { HOST_TOKEN };
