import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { FetchResponseWalker } from "@devplat/git-protocol";
import { git, gitEnvironment, repositories, run, startVersityGateway, until } from "@devplat/testkit";
import { command } from "./svc-git-stand.ts";
import { InstancesStand, type Instance } from "./svc-instances-stand.ts";

const INSTANCES = 4;
const READERS = 200;
const PACK_BYTES = 256 * 1024;
/** `cache.share_wait_seconds`, in milliseconds. */
const SHARE_WAIT_MS = 10_000;
/** Milliseconds by which a loaded machine delays a reader. A second wait for another instance would be longer. */
const SLACK_MS = 5000;
const AUTHORIZATION = `Basic ${Buffer.from("x:ghp_plantedHostToken").toString("base64")}`;

interface Reading {
  readonly instance: Instance;
  readonly status: number;
  readonly state: string;
  /** Whether the whole pack came, and its bytes fit its checksum. */
  readonly isWhole: boolean;
  readonly ms: number;
}

interface LogLine {
  readonly fence: number;
  readonly state?: string;
  readonly bytes?: number;
  readonly duration_ms?: number;
}

describe("shared fetches of four instances", { timeout: 480_000 }, () => {
  let stand: InstancesStand;
  let instances: Instance[];
  let count = 0;

  before(async () => {
    stand = await InstancesStand.start({ bucket: startVersityGateway });
    instances = await Promise.all(Array.from({ length: INSTANCES }, async () => start()));
  });
  after(async () => {
    await stand?.stop();
  });

  const start = async (): Promise<Instance> => {
    const instance = await stand.addInstance(`i${++count}`, {
      env: { SVC_LIMITS_CLIENT_REQUESTS: "0" },
    });
    await stand.ready(instance);
    return instance;
  };

  /** A new repository that all instances cache, and the request of a clone. */
  const repository = async (): Promise<{
    readonly name: string;
    readonly path: string;
    readonly body: Buffer;
  }> => {
    const name = `r${++count}`;
    const { path } = await stand.host.addRepository("acme", name, {
      private: true,
      // Small: the readers of the test share the processor with the instances.
      build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: PACK_BYTES }),
    });
    await stand.call(instances[0]!.svc, "POST", "/api/cached-repos", { owner: "acme", name });
    const head = await git(["-C", path, "rev-parse", "HEAD"]);
    await Promise.all(
      instances.map(async ({ svc }) =>
        until(async () => {
          const listed = await stand.call<{ name: string }[]>(svc, "GET", "/api/cached-repos");
          return listed.some((each) => each.name === name);
        }),
      ),
    );
    stand.host.resetCalls();
    return { name, path, body: command("fetch", ["ofs-delta", `want ${head}`, "done"]) };
  };

  const post = async (url: string, name: string, body: Buffer, authorization: string): Promise<Response> =>
    fetch(`${url}/acme/${name}.git/git-upload-pack`, {
      method: "POST",
      headers: {
        "content-type": "application/x-git-upload-pack-request",
        "git-protocol": "version=2",
        authorization,
      },
      body: new Uint8Array(body),
    });

  const read = async (
    instance: Instance,
    name: string,
    body: Buffer,
    authorization = AUTHORIZATION,
  ): Promise<Reading> => {
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
  };

  const readAll = (name: string, body: Buffer, readers = READERS): Promise<Reading>[] =>
    Array.from({ length: readers }, async (_, at) => read(instances[at % INSTANCES]!, name, body));

  const upstreamFetches = (): number =>
    stand.host.calls.filter(({ command: sent }) => sent === "fetch").length;

  /**
   * Milliseconds of a fetch from the code host that takes some time, for all readers, if none of them waits for another
   * instance: they all use one. The time of the test's own work is in it.
   */
  const unshared = async (delayMs: number): Promise<number> => {
    const { name, body } = await repository();
    const shortMs = 1000;
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: shortMs });
    const readings = await Promise.all(
      Array.from({ length: READERS }, async () => read(instances[0]!, name, body)),
    );
    assert.equal(upstreamFetches(), 1);
    return slowest(readings) - shortMs + delayMs;
  };

  const led = async ({ svc }: Instance): Promise<number> => {
    const text = await (await fetch(svc.metricsUrl)).text();
    return Number(/^svc_cache_shared_fetch_total\{result="led"\} (\d+)$/m.exec(text)?.[1] ?? 0);
  };

  /** Results of the shared fetches of all instances, for messages. */
  const turns = async (): Promise<string> => {
    const texts = await Promise.all(instances.map(async ({ svc }) => (await fetch(svc.metricsUrl)).text()));
    return texts
      .map((text) =>
        [...text.matchAll(/shared_fetch_total\{result="(\w+)"\} (\d+)/g)].map(([, a, b]) => `${a} ${b}`),
      )
      .map((each) => each.join(", "))
      .join("; ");
  };

  /** Log lines of all instances about shared fetches of a repository. */
  const sharedLines = (name: string): LogLine[] =>
    instances
      .flatMap(({ svc }) => svc.log().split("\n"))
      .filter((line) => line.includes(`"acme/${name}"`) && line.includes('"fence"'))
      .map((line) => JSON.parse(line) as LogLine);

  /** The instance that fetches for the others, and the readings that run. */
  const whileOneLeads = async (
    name: string,
    body: Buffer,
    readers: number,
  ): Promise<{ readonly leader: Instance; readonly readings: Promise<Reading>[] }> => {
    const earlier = await Promise.all(instances.map(led));
    const readings = readAll(name, body, readers);
    let leader: Instance | undefined;
    await until(async () => {
      const now = await Promise.all(instances.map(led));
      leader = instances.find((_, at) => now[at]! > earlier[at]!);
      return leader !== undefined && upstreamFetches() > 0;
    });
    // The others wait in the database by then.
    await until(async () => {
      const query = "SELECT count(*) FROM shared_fetches WHERE is_awaited = 1 AND state = 'fetching'";
      return Number(await stand.sql(query)) > 0;
    });
    return { leader: leader!, readings };
  };

  const fsck = async ({ svc }: Instance, name: string): Promise<void> => {
    const to = join(stand.folder.path, `clone-${++count}`);
    const url = `${svc.url.replace("://", "://x:ghp_plantedHostToken@")}/acme/${name}.git`;
    const { code, stderr } = await run("git", ["clone", "-q", "--bare", url, to], { env: gitEnvironment() });
    assert.equal(code, 0, stderr);
    await git(["-C", to, "fsck", "--full", "--strict"]);
  };

  it("200 cold readers cause one fetch if it takes less than 8 seconds", async () => {
    const fault = { delayMs: 7000 };
    const limitMs = (await unshared(fault.delayMs)) + SHARE_WAIT_MS;
    const { name, body } = await repository();
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, fault);
    const readings = await Promise.all(readAll(name, body));
    assert.equal(upstreamFetches(), 1, await turns());
    assert.ok(readings.every(({ status, isWhole }) => status === 200 && isWhole));
    assert.ok(slowest(readings) < limitMs + SLACK_MS, `${slowest(readings)} ms, limit ${limitMs} ms`);
    assert.ok(readings.filter(({ state }) => state === "miss").length <= 1);
    const others = sharedLines(name).filter((line) => "waited_ms" in line);
    let made: LogLine[] = [];
    await until(() => (made = sharedLines(name).filter((line) => "duration_ms" in line)).length > 0);
    assert.deepEqual([made.length, made[0]?.state], [1, "shared"]);
    assert.ok(made[0]!.bytes! > PACK_BYTES / 2 && made[0]!.duration_ms! >= fault.delayMs);
    assert.equal(others.length, INSTANCES - 1, "each of the other instances says once that it waited");
    assert.ok(others.every(({ fence }) => fence === made[0]?.fence));
    // One that comes a little later is served without the code host, too.
    for (const instance of instances) assert.equal((await read(instance, name, body)).state, "hit");
    assert.equal(upstreamFetches(), 1, await turns());
    for (const instance of instances) await fsck(instance, name);
  });

  it("200 cold readers cause at most one fetch of each instance if it takes longer", async () => {
    const fault = { delayMs: 12_000 };
    const limitMs = (await unshared(fault.delayMs)) + SHARE_WAIT_MS;
    const { name, body } = await repository();
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, fault);
    const readings = await Promise.all(readAll(name, body));
    assert.ok(upstreamFetches() <= INSTANCES, `${upstreamFetches()} fetches`);
    assert.ok(readings.every(({ status, isWhole }) => status === 200 && isWhole));
    assert.ok(slowest(readings) < limitMs, `${slowest(readings)} ms, limit ${limitMs} ms`);
    // The fetches of the others began later, and have no response when the first one is in the bucket.
    assert.equal(readings.filter(({ state }) => state === "miss").length, 1, await turns());
    for (const instance of instances) await fsck(instance, name);
  });

  it("readers use the own fetch of their instance if its response has begun", async () => {
    const { name, body } = await repository();
    const path = new RegExp(name);
    // The first fetch begins and never ends.
    stand.host.inject({ command: "fetch", path, times: 1 }, { stallAfterBytes: 50_000 });
    const { leader, readings } = await whileOneLeads(name, body, 40);
    const others = await Promise.all(readings.filter((_, at) => instances[at % INSTANCES] !== leader));
    for (const { status, isWhole, ms } of others) {
      assert.deepEqual([status, isWhole], [200, true]);
      assert.ok(ms < SHARE_WAIT_MS + SLACK_MS, `${ms} ms`);
    }
    assert.equal(upstreamFetches(), INSTANCES, await turns());
    await startAgain(leader);
    await Promise.all(readings);
  });

  it("readers elsewhere go on when the instance that fetches is killed in the middle", async () => {
    const { name, body } = await repository();
    stand.host.inject({ command: "fetch", path: new RegExp(name), times: 1 }, { stallAfterBytes: 50_000 });
    const { leader, readings } = await whileOneLeads(name, body, 40);
    const restart = leader.kill();
    const ended = await Promise.all(readings);
    for (const { instance, status, isWhole, ms } of ended) {
      if (instance === leader) continue;
      assert.deepEqual([status, isWhole], [200, true]);
      assert.ok(ms < SHARE_WAIT_MS + SLACK_MS, `${ms} ms`);
    }
    assert.ok(upstreamFetches() <= INSTANCES);
    instances[instances.indexOf(leader)] = await restart();
    for (const instance of instances) await fsck(instance, name);
  });

  it("readers elsewhere go on when the instance that fetches is paused in the middle", async () => {
    const { name, body } = await repository();
    stand.host.inject({ command: "fetch", path: new RegExp(name), times: 1 }, { stallAfterBytes: 50_000 });
    const { leader, readings } = await whileOneLeads(name, body, 40);
    process.kill(leader.svc.pid, "SIGSTOP");
    const isLeaders = (at: number): boolean => instances[at % INSTANCES] === leader;
    const others = await Promise.all(readings.filter((_, at) => !isLeaders(at)));
    process.kill(leader.svc.pid, "SIGCONT");
    for (const { status, isWhole, ms } of others) {
      assert.deepEqual([status, isWhole], [200, true]);
      assert.ok(ms < SHARE_WAIT_MS + SLACK_MS, `${ms} ms`);
    }
    assert.ok(upstreamFetches() <= INSTANCES);
    stand.host.clearFaults();
    const again = await startAgain(leader);
    // Its own clients end without a whole response, or with a right one: the code host never sends the rest.
    await Promise.all(readings);
    await fsck(again, name);
  });

  it("all readers go on when the database ends in the middle", async () => {
    const { name, body } = await repository();
    const fault = { delayMs: 4000 };
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, fault);
    const { readings } = await whileOneLeads(name, body, 100);
    for (const { relay } of instances) relay.cut();
    const ended = await Promise.all(readings);
    for (const { relay } of instances) relay.restore();
    for (const { status, isWhole, ms } of ended) {
      assert.deepEqual([status, isWhole], [200, true]);
      assert.ok(ms < fault.delayMs + SHARE_WAIT_MS + SLACK_MS, `${ms} ms`);
    }
    assert.ok(upstreamFetches() <= INSTANCES, `${upstreamFetches()} fetches`);
    await until(async () => (await fetch(`${instances[0]!.svc.url}/readyz?require=database`)).status === 200);
  });

  it("a reader that waits gets nothing after the code host has revoked its access", async () => {
    const { name, body } = await repository();
    const released = Promise.withResolvers<void>();
    const path = new RegExp(name);
    stand.host.inject({ command: "fetch", path, times: 1 }, { until: released.promise });
    const { leader, readings } = await whileOneLeads(name, body, INSTANCES);
    const stranger = await read(
      instances.find((each) => each !== leader)!,
      name,
      body,
      "Basic eDp5",
    );
    assert.ok(stranger.status >= 400 && !stranger.isWhole, "a stranger learns nothing of it");
    // An authorization is remembered for `cache.grant_seconds` (5).
    await new Promise((resolve) => setTimeout(resolve, 5500));
    stand.host.inject({ command: "ls-refs", path }, { status: 403, body: "no access any more" });
    released.resolve();
    for (const { instance, status, isWhole } of await Promise.all(readings)) {
      if (instance === leader) continue;
      assert.deepEqual([status, isWhole], [403, false]);
    }
    stand.host.clearFaults();
  });

  it("a clone, a shallow one and a partial one of empty instances cost three fetches", async () => {
    const { name, body, path } = await repository();
    const head = await git(["-C", path, "rev-parse", "HEAD"]);
    const [full, shallow, partial] = instances as [Instance, Instance, Instance];
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: 1000 });
    const cloned = read(full, name, body);
    await until(() => upstreamFetches() > 0);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const of = (kind: string): Buffer => command("fetch", ["ofs-delta", kind, `want ${head}`, "done"]);
    const others = [read(shallow, name, of("deepen 1")), read(partial, name, of("filter blob:none"))];
    for (const { status, isWhole, state } of await Promise.all([cloned, ...others]))
      assert.deepEqual([status, isWhole, state], [200, true, "miss"]);
    // Their mirrors are filled from the bucket behind these responses.
    for (const { svc } of [full, shallow, partial]) {
      await until(async () => {
        type Listed = { readonly name: string; readonly stats: { readonly packs: number } }[];
        const listed = await stand.call<Listed>(svc, "GET", "/api/cached-repos");
        return listed.some((each) => each.name === name && each.stats.packs > 0);
      });
    }
    for (const instance of instances) assert.equal((await read(instance, name, of("deepen 2"))).state, "hit");
    for (const instance of instances) await fsck(instance, name);
    assert.equal(upstreamFetches(), 3, await turns());
  });

  /** @returns the request of the new commits */
  const pushed = async (name: string, path: string): Promise<Buffer> => {
    await stand.host.push("acme", name, { commits: 3 });
    stand.host.resetCalls();
    return command("fetch", ["ofs-delta", `want ${await git(["-C", path, "rev-parse", "HEAD"])}`, "done"]);
  };

  /** A repository whose mirror each instance has, and the refs of which each has seen a moment ago. */
  const mirrored = async (): Promise<{ readonly name: string; readonly path: string }> => {
    const { name, path } = await repository();
    // Refs after a push that share none with those before it could be of another repository.
    await git(["-C", path, "branch", "kept"]);
    const oid = await git(["-C", path, "rev-parse", "HEAD"]);
    for (const { svc } of instances) {
      const response = await fetch(`${svc.url}/acme/${name}.git/svc/ensure`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: AUTHORIZATION },
        body: JSON.stringify({ refs: { HEAD: oid }, timeout: 30 }),
      });
      assert.equal(response.status, 200, await response.text());
    }
    for (const instance of instances) await fsck(instance, name);
    return { name, path };
  };

  it("a push that four instances want costs the code host one fetch", async () => {
    const { name, path } = await mirrored();
    const fresh = await pushed(name, path);
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: 1500 });
    // As git does: first the refs, by which each instance knows the push.
    for (const { svc } of instances)
      await (await post(svc.url, name, command("ls-refs", ["peel", "symrefs"]), AUTHORIZATION)).bytes();
    const readings = await Promise.all(readAll(name, fresh, 40));
    assert.ok(readings.every(({ status, isWhole }) => status === 200 && isWhole));
    assert.equal(upstreamFetches(), 1, await turns());
  });

  it("a push is shared with instances that know only the refs before it", async () => {
    const { name, path } = await mirrored();
    const fresh = await pushed(name, path);
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: 1500 });
    const readings = await Promise.all(readAll(name, fresh, 40));
    assert.ok(readings.every(({ status, isWhole }) => status === 200 && isWhole));
    assert.equal(upstreamFetches(), 1, await turns());
  });

  it("an instance sends nothing shared that the code host shows no more", async () => {
    const { name, path } = await mirrored();
    const older = await git(["-C", path, "rev-parse", "HEAD"]);
    const fresh = await pushed(name, path);
    const released = Promise.withResolvers<void>();
    stand.host.inject({ command: "fetch", path: new RegExp(name), times: 1 }, { until: released.promise });
    const { leader, readings } = await whileOneLeads(name, fresh, INSTANCES);
    await git(["-C", path, "update-ref", "HEAD", older]);
    released.resolve();
    const states = await Promise.all(readings);
    // The code host itself decides about the requests of the others.
    for (const { instance, state } of states) if (instance !== leader) assert.notEqual(state, "hit");
    assert.equal(upstreamFetches(), INSTANCES, await turns());
  });

  async function startAgain(leader: Instance): Promise<Instance> {
    const restart = leader.kill();
    const again = await restart();
    instances[instances.indexOf(leader)] = again;
    return again;
  }
});

/** Milliseconds of the last reading. */
function slowest(readings: readonly Reading[]): number {
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
