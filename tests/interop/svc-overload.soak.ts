import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { FetchResponseWalker } from "@devplat/git-protocol";
import {
  git,
  gitEnvironment,
  repositories,
  run,
  startCodeHostProcess,
  startSvc,
  tempFolder,
  until,
  type CodeHostProcess,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import { inMemoryGroup } from "./memory-group.ts";
import { command } from "./svc-git-stand.ts";
import { cloneOfBranch, commitOn, invented } from "./svc-overload-stand.ts";

/** Clones at the same time (spec/svc-scale.md section 5). */
const CLONES = 49;
/** Those of them that are stock git's. The others read the response and check its pack, which costs less CPU. */
const STOCK = 9;
const BLOBS = 8;
const BLOB_BYTES = 8 * 2 ** 20;
/** Limit of the service's control group, which counts the pages of its files, too. */
const MEMORY_BYTES = 512 * 2 ** 20;
/** Incremental fetches before the load, for comparison. */
const IDLE_FETCHES = 200;
/** Milliseconds between two incremental fetches. */
const PAUSE_MS = 20;

interface Fetched {
  readonly ms: number;
  readonly bytes: number;
  /** The pack's own checksum is right, and the response ends with its flush-pkt. */
  readonly whole: boolean;
  /** Text of side-band 2. */
  readonly progress: string;
  /** The request was refused before the first byte of its pack. */
  readonly refusal: string | undefined;
}

/** Largest resident set of a process so far, in bytes. */
function peakOf(pid: number): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

describe(
  `${CLONES} concurrent clones with ${MEMORY_BYTES / 2 ** 20} MB of memory`,
  { timeout: 1_800_000 },
  () => {
    let codeHost: CodeHostProcess;
    let folder: TempFolder;
    let svc: Svc;
    let dataDir = "";
    let removeGroup: (() => Promise<void>) | undefined;
    let tip = "";
    const oids: string[] = [];

    before(async () => {
      folder = await tempFolder("svc-overload");
      codeHost = await startCodeHostProcess();
      const { path } = await codeHost.addRepository("org", "large", {
        build: (dir) => repositories.bigBlobs(dir, { blobs: BLOBS, bytes: BLOB_BYTES }),
      });
      tip = await git(["-C", path, "rev-parse", "main"]);
      // Tests run in a folder in memory, and its files would count for the limit.
      dataDir = await mkdtemp("/var/tmp/devplat-overload-");
      const limited = await inMemoryGroup(MEMORY_BYTES, async () => startSvc({ codeHost, dataDir }));
      svc = limited.value;
      removeGroup = async () => limited.remove();
      await svc.addCachedRepository("org", "large");
      await git(["clone", "-q", "--bare", `${svc.url}/org/large`, join(folder.path, "first")]);
      for (let at = 0; at < CLONES; at++) oids.push(await commitOn(path, `b${at}`, oids.at(-1) ?? tip));
      await git(["ls-remote", `${svc.url}/org/large`]);
      await post(command("fetch", ["thin-pack", `want ${oids.at(-1)}`, `have ${tip}`, "done"]));
    });
    after(async () => {
      await svc?.stop();
      await removeGroup?.();
      await rm(dataDir, { recursive: true });
      await codeHost?.stop();
      await folder?.remove();
    });

    const post = (body: Buffer): Promise<Fetched> =>
      new Promise((resolve, reject) => {
        const startedAt = performance.now();
        const outgoing = request(
          `${svc.url}/org/large/git-upload-pack`,
          {
            method: "POST",
            agent: false,
            headers: {
              "Content-Type": "application/x-git-upload-pack-request",
              Accept: "application/x-git-upload-pack-result",
              "Git-Protocol": "version=2",
            },
          },
          (response) => {
            const hash = createHash("sha1");
            let held = Buffer.alloc(0);
            let bytes = 0;
            let progress = "";
            let refusal: string | undefined;
            const walker = new FetchResponseWalker({
              pack: (part) => {
                bytes += part.length;
                held = Buffer.concat([held, part]);
                hash.update(held.subarray(0, Math.max(0, held.length - 20)));
                held = held.subarray(Math.max(0, held.length - 20));
              },
            });
            response.on("data", (chunk: Buffer) => {
              if (progress.length < 1000)
                progress += /waiting, \d+ ahead/.exec(chunk.toString("latin1"))?.[0] ?? "";
              try {
                walker.push(chunk);
              } catch (error) {
                // An ERR packet before the first byte of the pack is a refusal.
                refusal = bytes === 0 ? chunk.toString("latin1") : undefined;
                if (refusal === undefined) reject(error);
              }
            });
            response.on("error", reject);
            response.on("end", () => {
              const whole = walker.complete && hash.digest().equals(held);
              resolve({ ms: performance.now() - startedAt, bytes, whole, progress, refusal });
            });
          },
        );
        outgoing.on("error", reject);
        outgoing.end(body);
      });

    /** A clone with one invented have: a response of its own for each. */
    const clone = (at: number): Promise<Fetched> =>
      post(command("fetch", [`want ${oids[at]}`, `have ${invented(at)}`, "done"]));

    let fetches = 0;
    const incremental = async (): Promise<number> => {
      const at = fetches++ % (CLONES - 1);
      const have = oids[at];
      const { ms, whole } = await post(
        command("fetch", ["thin-pack", `want ${oids[CLONES - 1]}`, `have ${have}`, "done"]),
      );
      assert.ok(whole);
      return ms;
    };

    const fetchWhile = async (isOver: () => boolean): Promise<number[]> => {
      const times: number[] = [];
      while (!isOver()) {
        times.push(await incremental());
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
      return times;
    };
    const p99 = (times: readonly number[]): number =>
      times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0;

    it("no transfer ends in the middle, and memory stays within the limit", async () => {
      const idle: number[] = [];
      for (let at = 0; at < IDLE_FETCHES; at++) {
        idle.push(await incremental());
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
      let over = false;
      const startedAt = performance.now();
      const stock = Array.from({ length: STOCK }, (_, at) =>
        run("git", cloneOfBranch(`${svc.url}/org/large`, `b${at}`), {
          cwd: folder.path,
          env: { ...process.env, ...gitEnvironment() },
          timeoutMs: 900_000,
        }),
      );
      const raw = Array.from({ length: CLONES - STOCK }, (_, at) => clone(STOCK + at));
      const measuring = fetchWhile(() => over);
      const [clones, responses] = await Promise.all([Promise.all(stock), Promise.all(raw)]);
      over = true;
      const busy = await measuring;
      const seconds = (performance.now() - startedAt) / 1000;
      for (const { code, stderr } of clones) assert.equal(code, 0, stderr);
      const refused = responses.filter(({ refusal }) => refusal !== undefined);
      const cut = responses.filter(
        ({ whole, bytes, refusal }) => refusal === undefined && (!whole || bytes < BLOBS * BLOB_BYTES),
      );
      const told = responses.filter(({ progress }) => progress !== "").length;
      const figures = {
        seconds,
        cut: cut.length,
        refused: refused.length,
        why: refused[0]?.refusal,
        told: told + clones.filter(({ stderr }) => /waiting, \d+ ahead/.test(stderr)).length,
        peakMegabytes: peakOf(svc.pid) / 2 ** 20,
        idleP99: p99(idle),
        busyP99: p99(busy),
        busyFetches: busy.length,
      };
      process.stderr.write(`${JSON.stringify(figures)}\n`);
      assert.equal(cut.length, 0);
      assert.ok(figures.peakMegabytes < MEMORY_BYTES / 2 ** 20, JSON.stringify(figures));
    });

    it("a restart in the middle loses nobody who has bytes", async () => {
      const raw = Array.from({ length: CLONES }, (_, at) => clone(at).catch((error: unknown) => error));
      await new Promise((resolve) => setTimeout(resolve, 1000));
      process.kill(svc.pid, "SIGTERM");
      const responses = await Promise.all(raw);
      for (const each of responses) {
        assert.ok(!(each instanceof Error), String(each));
        assert.ok((each as Fetched).whole || (each as Fetched).refusal !== undefined);
      }
      // A second signal would end it before the responses are on the disk.
      await until(() => !existsSync(`/proc/${svc.pid}`));
      assert.equal(await svc.stop(), 0);
    });
  },
);
