import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { git, startVersityGateway, until } from "@devplat/testkit";
import { AUTHORIZATION, FetchReaders, PACK_BYTES, post, slowest } from "./svc-fetch-readers.ts";
import { command } from "./svc-git-stand.ts";
import { InstancesStand, type Instance } from "./svc-instances-stand.ts";

const INSTANCES = 4;
const READERS = 200;
/** `cache.share_wait_seconds`, in milliseconds. */
const SHARE_WAIT_MS = 10_000;
/** Milliseconds by which a loaded machine delays a reader. A second wait for another instance would be longer. */
const SLACK_MS = 5000;

interface LogLine {
  readonly fence: number;
  readonly state?: string;
  readonly bytes?: number;
  readonly duration_ms?: number;
}

describe("shared fetches of four instances", { timeout: 480_000 }, () => {
  let stand: InstancesStand;
  let instances: Instance[];
  let readers: FetchReaders;
  let count = 0;

  before(async () => {
    stand = await InstancesStand.start({ bucket: startVersityGateway });
    instances = await Promise.all(Array.from({ length: INSTANCES }, async () => start()));
    readers = new FetchReaders(stand, instances);
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

  /**
   * Milliseconds of a fetch from the code host that takes some time, for all readers, if none of them waits for another
   * instance: they all use one. The time of the test's own work is in it.
   */
  const unshared = async (delayMs: number): Promise<number> => {
    const { name, body } = await readers.repository();
    const shortMs = 1000;
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: shortMs });
    const readings = await Promise.all(
      Array.from({ length: READERS }, async () => readers.read(instances[0]!, name, body)),
    );
    assert.equal(stand.fetches(), 1);
    return slowest(readings) - shortMs + delayMs;
  };

  /** Log lines of all instances about shared fetches of a repository. */
  const sharedLines = (name: string): LogLine[] =>
    instances
      .flatMap(({ svc }) => svc.log().split("\n"))
      .filter((line) => line.includes(`"acme/${name}"`) && line.includes('"fence"'))
      .map((line) => JSON.parse(line) as LogLine);

  it("200 cold readers cause one fetch if it takes less than 8 seconds", async () => {
    const fault = { delayMs: 6000 };
    const limitMs = (await unshared(fault.delayMs)) + SHARE_WAIT_MS;
    const { name, body } = await readers.repository();
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, fault);
    const readings = await Promise.all(readers.readAll(name, body, READERS));
    assert.equal(stand.fetches(), 1, await readers.turns());
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
    for (const instance of instances) assert.equal((await readers.read(instance, name, body)).state, "hit");
    assert.equal(stand.fetches(), 1, await readers.turns());
    for (const instance of instances) await readers.fsck(instance, name);
  });

  it("200 cold readers cause at most one fetch of each instance if it takes longer", async () => {
    const fault = { delayMs: 12_000 };
    const limitMs = (await unshared(fault.delayMs)) + SHARE_WAIT_MS;
    const { name, body } = await readers.repository();
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, fault);
    const readings = await Promise.all(readers.readAll(name, body, READERS));
    assert.ok(stand.fetches() <= INSTANCES, `${stand.fetches()} fetches`);
    assert.ok(readings.every(({ status, isWhole }) => status === 200 && isWhole));
    assert.ok(slowest(readings) < limitMs, `${slowest(readings)} ms, limit ${limitMs} ms`);
    // The fetches of the others began later, and have no response when the first one is in the bucket.
    assert.equal(readings.filter(({ state }) => state === "miss").length, 1, await readers.turns());
    for (const instance of instances) await readers.fsck(instance, name);
  });

  it("readers use the own fetch of their instance if its response has begun", async () => {
    const { name, body } = await readers.repository();
    const path = new RegExp(name);
    // The first fetch begins and never ends.
    stand.host.inject({ command: "fetch", path, times: 1 }, { stallAfterBytes: 50_000 });
    const { leader, readings } = await readers.whileOneLeads(name, body, 40);
    const others = await Promise.all(readings.filter((_, at) => instances[at % INSTANCES] !== leader));
    for (const { status, isWhole, ms } of others) {
      assert.deepEqual([status, isWhole], [200, true]);
      assert.ok(ms < SHARE_WAIT_MS + SLACK_MS, `${ms} ms`);
    }
    assert.equal(stand.fetches(), INSTANCES, await readers.turns());
    await startAgain(leader);
    await Promise.all(readings);
  });

  it("readers elsewhere go on when the instance that fetches is killed in the middle", async () => {
    const { name, body } = await readers.repository();
    stand.host.inject({ command: "fetch", path: new RegExp(name), times: 1 }, { stallAfterBytes: 50_000 });
    const { leader, readings } = await readers.whileOneLeads(name, body, 40);
    const restart = leader.kill();
    const ended = await Promise.all(readings);
    for (const { instance, status, isWhole, ms } of ended) {
      if (instance === leader) continue;
      assert.deepEqual([status, isWhole], [200, true]);
      assert.ok(ms < SHARE_WAIT_MS + SLACK_MS, `${ms} ms`);
    }
    assert.ok(stand.fetches() <= INSTANCES);
    instances[instances.indexOf(leader)] = await restart();
    for (const instance of instances) await readers.fsck(instance, name);
  });

  it("readers elsewhere go on when the instance that fetches is paused in the middle", async () => {
    const { name, body } = await readers.repository();
    stand.host.inject({ command: "fetch", path: new RegExp(name), times: 1 }, { stallAfterBytes: 50_000 });
    const { leader, readings } = await readers.whileOneLeads(name, body, 40);
    process.kill(leader.svc.pid, "SIGSTOP");
    const isLeaders = (at: number): boolean => instances[at % INSTANCES] === leader;
    const others = await Promise.all(readings.filter((_, at) => !isLeaders(at)));
    process.kill(leader.svc.pid, "SIGCONT");
    for (const { status, isWhole, ms } of others) {
      assert.deepEqual([status, isWhole], [200, true]);
      assert.ok(ms < SHARE_WAIT_MS + SLACK_MS, `${ms} ms`);
    }
    assert.ok(stand.fetches() <= INSTANCES);
    stand.host.clearFaults();
    const again = await startAgain(leader);
    // Its own clients end without a whole response, or with a right one: the code host never sends the rest.
    await Promise.all(readings);
    await readers.fsck(again, name);
  });

  it("all readers go on when the database ends in the middle", async () => {
    const { name, body } = await readers.repository();
    const fault = { delayMs: 4000 };
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, fault);
    const { readings } = await readers.whileOneLeads(name, body, 100);
    for (const { relay } of instances) relay.cut();
    const ended = await Promise.all(readings);
    for (const { relay } of instances) relay.restore();
    for (const { status, isWhole, ms } of ended) {
      assert.deepEqual([status, isWhole], [200, true]);
      assert.ok(ms < fault.delayMs + SHARE_WAIT_MS + SLACK_MS, `${ms} ms`);
    }
    assert.ok(stand.fetches() <= INSTANCES, `${stand.fetches()} fetches`);
    await until(async () => (await fetch(`${instances[0]!.svc.url}/readyz?require=database`)).status === 200);
  });

  it("a reader that waits gets nothing after the code host has revoked its access", async () => {
    const { name, body } = await readers.repository();
    const released = Promise.withResolvers<void>();
    const path = new RegExp(name);
    stand.host.inject({ command: "fetch", path, times: 1 }, { until: released.promise });
    const { leader, readings } = await readers.whileOneLeads(name, body, INSTANCES);
    const stranger = await readers.read(
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
    const { name, body, path } = await readers.repository();
    const head = await git(["-C", path, "rev-parse", "HEAD"]);
    const [full, shallow, partial] = instances as [Instance, Instance, Instance];
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: 1000 });
    const cloned = readers.read(full, name, body);
    await until(() => stand.fetches() > 0);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const of = (kind: string): Buffer => command("fetch", ["ofs-delta", kind, `want ${head}`, "done"]);
    const others = [
      readers.read(shallow, name, of("deepen 1")),
      readers.read(partial, name, of("filter blob:none")),
    ];
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
    for (const instance of instances)
      assert.equal((await readers.read(instance, name, of("deepen 2"))).state, "hit");
    for (const instance of instances) await readers.fsck(instance, name);
    assert.equal(stand.fetches(), 3, await readers.turns());
  });

  /** @returns the request of the new commits */
  const pushed = async (name: string, path: string): Promise<Buffer> => {
    await stand.host.push("acme", name, { commits: 3 });
    stand.host.resetCalls();
    return command("fetch", ["ofs-delta", `want ${await git(["-C", path, "rev-parse", "HEAD"])}`, "done"]);
  };

  /** A repository whose mirror each instance has, and the refs of which each has seen a moment ago. */
  const mirrored = async (): Promise<{ readonly name: string; readonly path: string }> => {
    const { name, path } = await readers.repository();
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
    for (const instance of instances) await readers.fsck(instance, name);
    return { name, path };
  };

  it("a push that four instances want costs the code host one fetch", async () => {
    const { name, path } = await mirrored();
    const fresh = await pushed(name, path);
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: 1500 });
    // As git does: first the refs, by which each instance knows the push.
    for (const { svc } of instances)
      await (await post(svc.url, name, command("ls-refs", ["peel", "symrefs"]))).bytes();
    const readings = await Promise.all(readers.readAll(name, fresh, 40));
    assert.ok(readings.every(({ status, isWhole }) => status === 200 && isWhole));
    assert.equal(stand.fetches(), 1, await readers.turns());
  });

  it("a push is shared with instances that know only the refs before it", async () => {
    const { name, path } = await mirrored();
    const fresh = await pushed(name, path);
    stand.host.inject({ command: "fetch", path: new RegExp(name) }, { delayMs: 1500 });
    const readings = await Promise.all(readers.readAll(name, fresh, 40));
    assert.ok(readings.every(({ status, isWhole }) => status === 200 && isWhole));
    assert.equal(stand.fetches(), 1, await readers.turns());
  });

  it("an instance sends nothing shared that the code host shows no more", async () => {
    const { name, path } = await mirrored();
    const older = await git(["-C", path, "rev-parse", "HEAD"]);
    const fresh = await pushed(name, path);
    const released = Promise.withResolvers<void>();
    stand.host.inject({ command: "fetch", path: new RegExp(name), times: 1 }, { until: released.promise });
    const { leader, readings } = await readers.whileOneLeads(name, fresh, INSTANCES);
    await git(["-C", path, "update-ref", "HEAD", older]);
    released.resolve();
    const states = await Promise.all(readings);
    // The code host itself decides about the requests of the others.
    for (const { instance, state } of states) if (instance !== leader) assert.notEqual(state, "hit");
    assert.equal(stand.fetches(), INSTANCES, await readers.turns());
  });

  async function startAgain(leader: Instance): Promise<Instance> {
    const restart = leader.kill();
    const again = await restart();
    instances[instances.indexOf(leader)] = again;
    return again;
  }
});
