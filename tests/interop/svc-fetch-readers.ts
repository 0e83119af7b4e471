import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { FetchResponseWalker } from "@devplat/git-protocol";
import { git, gitEnvironment, repositories, run, until } from "@devplat/testkit";
import { command } from "./svc-git-stand.ts";
import { addressOf, type Instance, type InstancesStand } from "./svc-instances-stand.ts";

export const PACK_BYTES = 256 * 1024;
export const AUTHORIZATION = `Basic ${Buffer.from("x:ghp_plantedHostToken").toString("base64")}`;

export interface Reading {
  readonly instance: Instance;
  readonly status: number;
  readonly state: string;
  /** Whether the whole pack came, and its bytes fit its checksum. */
  readonly isWhole: boolean;
  readonly ms: number;
}

/** A repository that all instances cache. */
export interface ReadRepository {
  readonly name: string;
  readonly path: string;
  /** Request of a clone. */
  readonly body: Buffer;
}

/** Many readers of repositories through instances that share their fetches. */
export class FetchReaders {
  readonly #stand: InstancesStand;
  readonly #instances: Instance[];
  /** All names have the same length, so that no name is the beginning of another: faults find them by pattern. */
  #count = 100;

  /** @param instances may be changed by the caller */
  constructor(stand: InstancesStand, instances: Instance[]) {
    this.#stand = stand;
    this.#instances = instances;
  }

  async repository(): Promise<ReadRepository> {
    const stand = this.#stand;
    const name = `r${++this.#count}`;
    const { path } = await stand.host.addRepository("acme", name, {
      private: true,
      // Small: the readers of the test share the processor with the instances.
      build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: PACK_BYTES }),
    });
    await stand.call(this.#instances[0]!.svc, "POST", "/api/cached-repos", { owner: "acme", name });
    const head = await git(["-C", path, "rev-parse", "HEAD"]);
    await Promise.all(
      this.#instances.map(async ({ svc }) =>
        until(async () => {
          const listed = await stand.call<{ name: string }[]>(svc, "GET", "/api/cached-repos");
          return listed.some((each) => each.name === name);
        }),
      ),
    );
    stand.host.resetCalls();
    return { name, path, body: command("fetch", ["ofs-delta", `want ${head}`, "done"]) };
  }

  async read(
    instance: Instance,
    name: string,
    body: Buffer,
    authorization = AUTHORIZATION,
  ): Promise<Reading> {
    const startedAt = performance.now();
    const done = (more: Pick<Reading, "status" | "state" | "isWhole">): Reading => ({
      instance,
      ms: performance.now() - startedAt,
      ...more,
    });
    try {
      const response = await post(instance.svc.url, name, body, authorization);
      const state = response.headers.get("x-svc-cache") ?? "";
      return done({ status: response.status, state, isWhole: isWholeResponse(await response.bytes()) });
    } catch {
      return done({ status: 0, state: "", isWhole: false });
    }
  }

  /** The readers take turns in the instances. */
  readAll(name: string, body: Buffer, readers: number): Promise<Reading>[] {
    const instances = this.#instances;
    return Array.from({ length: readers }, async (_, at) =>
      this.read(instances[at % instances.length]!, name, body),
    );
  }

  /** Shared fetches that an instance has begun. */
  async led({ svc }: Instance): Promise<number> {
    const text = await (await fetch(svc.metricsUrl)).text();
    return Number(/^svc_cache_shared_fetch_total\{result="led"\} (\d+)$/m.exec(text)?.[1] ?? 0);
  }

  /** Results of the shared fetches of all instances, for messages. */
  async turns(): Promise<string> {
    const texts = await Promise.all(
      this.#instances.map(async ({ svc }) => (await fetch(svc.metricsUrl)).text()),
    );
    return texts
      .map((text) =>
        [...text.matchAll(/shared_fetch_total\{result="(\w+)"\} (\d+)/g)].map(([, a, b]) => `${a} ${b}`),
      )
      .map((each) => each.join(", "))
      .join("; ");
  }

  /** The instance that fetches for the others, and the readings that run. */
  async whileOneLeads(
    name: string,
    body: Buffer,
    readers: number,
  ): Promise<{ readonly leader: Instance; readonly readings: Promise<Reading>[] }> {
    const instances = this.#instances;
    const begun = async (): Promise<number[]> => Promise.all(instances.map(async (each) => this.led(each)));
    const earlier = await begun();
    const readings = this.readAll(name, body, readers);
    let leader: Instance | undefined;
    await until(async () => {
      const now = await begun();
      leader = instances.find((_, at) => now[at]! > earlier[at]!);
      return leader !== undefined && this.#stand.fetches() > 0;
    });
    // The others wait in the database by then.
    await until(async () => {
      const query = "SELECT count(*) FROM shared_fetches WHERE is_awaited = 1 AND state = 'fetching'";
      return Number(await this.#stand.sql(query)) > 0;
    });
    return { leader: leader!, readings };
  }

  /** Clones with stock git, and checks all objects. */
  async fsck({ svc }: Instance, name: string): Promise<void> {
    const to = join(this.#stand.folder.path, `fsck-${++this.#count}`);
    const { code, stderr } = await run("git", ["clone", "-q", "--bare", addressOf(svc.url, name), to], {
      env: gitEnvironment(),
    });
    assert.equal(code, 0, stderr);
    await git(["-C", to, "fsck", "--full", "--strict"]);
  }
}

/** Sends a request of upload-pack. */
export async function post(
  url: string,
  name: string,
  body: Buffer,
  authorization = AUTHORIZATION,
): Promise<Response> {
  return fetch(`${url}/acme/${name}.git/git-upload-pack`, {
    method: "POST",
    headers: {
      "content-type": "application/x-git-upload-pack-request",
      "git-protocol": "version=2",
      authorization,
    },
    body: new Uint8Array(body),
  });
}

/** Milliseconds of the last reading. */
export function slowest(readings: readonly Reading[]): number {
  return Math.max(...readings.map(({ ms }) => ms));
}

/** Whether a response has a whole pack, whose bytes fit its checksum. */
function isWholeResponse(response: Uint8Array): boolean {
  const parts: Buffer[] = [];
  const walker = new FetchResponseWalker({ pack: (bytes) => void parts.push(Buffer.from(bytes)) });
  try {
    walker.push(Buffer.from(response));
  } catch {
    return false;
  }
  const pack = Buffer.concat(parts);
  const hash = createHash("sha1").update(pack.subarray(0, -20)).digest();
  return walker.complete && pack.length > 32 && hash.equals(pack.subarray(-20));
}
