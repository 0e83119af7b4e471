import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, afterEach, before, describe, it } from "node:test";
import { git, repositories, startVersityGateway, until } from "@devplat/testkit";
import type { BucketReader } from "./svc-bucket-reader.ts";
import { basic, command } from "./svc-git-stand.ts";
import { HOST_TOKEN, InstancesStand, type Instance } from "./svc-instances-stand.ts";

/** Milliseconds after which all instances know of a change (spec/svc-scale.md section 4), and some more. */
const KNOWN_MS = 2500;
/** Milliseconds in which a fill of 256 KiB that begins after a response is complete, and uploaded. */
const FILLED_MS = 4000;
const LS_REFS = command("ls-refs", ["peel", "symrefs"]);

const removals = ["delete", "disable"] as const;

/** A repository of acme, and the id of its record. */
interface Listed {
  readonly name: string;
  readonly head: string;
  readonly id: string;
}

/** Sends a command as a client does. @returns whether the response has a pack, and its status */
async function post(
  { svc }: Instance,
  path: string,
  body: Buffer | string,
): Promise<{ readonly status: number; readonly text: string; readonly hasPack: boolean }> {
  const isCommand = typeof body !== "string";
  const response = await fetch(`${svc.url}/acme/${path}`, {
    method: "POST",
    headers: {
      authorization: basic(HOST_TOKEN),
      "git-protocol": "version=2",
      "content-type": isCommand ? "application/x-git-upload-pack-request" : "application/json",
    },
    body: isCommand ? new Uint8Array(body) : body,
  });
  const text = Buffer.from(await response.arrayBuffer()).toString("latin1");
  return { status: response.status, text, hasPack: text.includes("PACK") };
}

/** The code host holds responses to fetches, so that a change is known before the first byte comes. */
class InFlight {
  readonly stand: InstancesStand;
  #count = 0;

  constructor(stand: InstancesStand) {
    this.stand = stand;
  }

  /** Adds a repository that these instances cache. */
  async repository(instances: readonly Instance[]): Promise<Listed> {
    const { stand } = this;
    const name = `r${++this.#count}`;
    const { path } = await stand.host.addRepository("acme", name, {
      private: true,
      build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: 256 * 1024, seed: this.#count }),
    });
    const head = await git(["-C", path, "rev-parse", "HEAD"]);
    const [first] = instances;
    assert.ok(first !== undefined);
    const id = await stand.list(first.svc, name);
    for (const each of instances) await this.knows(each, name);
    stand.host.resetCalls();
    return { name, head, id };
  }

  /** Waits until an instance caches a repository. */
  async knows({ svc }: Instance, name: string): Promise<void> {
    const { stand } = this;
    await until(async () => {
      const listed = await stand.call<{ name: string }[]>(svc, "GET", "/api/cached-repos");
      return listed.some((each) => each.name === name);
    });
  }

  /** @returns function that lets the code host respond */
  hold(name: string, times = 1): () => void {
    const go = Promise.withResolvers<void>();
    const path = new RegExp(`${name}(\\.git)?/`);
    this.stand.host.inject({ command: "fetch", path, times }, { until: go.promise });
    return () => go.resolve();
  }

  async clone(instance: Instance, { name, head }: Listed): Promise<{ readonly hasPack: boolean }> {
    await post(instance, `${name}.git/git-upload-pack`, LS_REFS);
    const body = command("fetch", ["ofs-delta", `want ${head}`, "done"]);
    return await post(instance, `${name}.git/git-upload-pack`, body);
  }

  async remove({ svc }: Instance, how: (typeof removals)[number], id: string): Promise<void> {
    const path = `/api/cached-repos/${id}`;
    if (how === "delete") await this.stand.call(svc, "DELETE", path);
    else await this.stand.call(svc, "PATCH", path, { enabled: false });
    await sleep(KNOWN_MS);
  }

  /** Whether the cache folder of an instance has a mirror of a repository. */
  hasMirror({ svc }: Instance, { name }: Listed): boolean {
    return existsSync(join(svc.dataDir, "cache", "acme", `${name}.git`));
  }
}

describe("a repository is removed while instances fetch it", { timeout: 300_000 }, () => {
  let stand: InstancesStand;
  let reader: BucketReader;
  let flight: InFlight;
  let a: Instance;
  let b: Instance;
  before(async () => {
    stand = await InstancesStand.start({ bucket: startVersityGateway });
    a = await stand.addInstance("a");
    b = await stand.addInstance("b");
    for (const each of [a, b]) await stand.ready(each);
    reader = stand.bucketReader();
    flight = new InFlight(stand);
  });
  afterEach(() => stand.host.clearFaults());
  after(async () => {
    await reader?.close();
    await stand?.stop();
  });

  for (const isAwaited of [false, true])
    for (const at of ["a", "b"])
      for (const how of removals)
        it(`${how} at ${at}: nothing is stored${isAwaited ? "; another instance waits" : ""}`, async () => {
          const listed = await flight.repository([a, b]);
          const release = flight.hold(listed.name);
          const cloning = [flight.clone(a, listed)];
          await until(() => stand.fetches() > 0);
          if (isAwaited) cloning.push(flight.clone(b, listed));
          await sleep(1000);
          await flight.remove(at === "a" ? a : b, how, listed.id);
          release();
          for (const response of cloning) assert.ok((await response).hasPack);
          const fetches = stand.fetches();
          await sleep(FILLED_MS);
          assert.equal(stand.fetches(), fetches, "no fetch behind the responses");
          const manifest = await reader.manifest("acme", listed.name);
          assert.equal(manifest?.packs.length ?? 0, 0);
          assert.equal(manifest?.responses.length ?? 0, 0);
          for (const each of [a, b]) assert.equal(flight.hasMirror(each, listed), false, each.name);
        });

  it("lists it again: what was fetched before is not stored, the next clone is", async () => {
    const listed = await flight.repository([a, b]);
    const release = flight.hold(listed.name);
    const cloning = flight.clone(a, listed);
    await until(() => stand.fetches() > 0);
    await flight.remove(b, "delete", listed.id);
    await stand.list(b.svc, listed.name);
    await flight.knows(a, listed.name);
    await sleep(KNOWN_MS);
    release();
    assert.ok((await cloning).hasPack);
    await sleep(FILLED_MS);
    assert.equal(flight.hasMirror(a, listed), false);
    assert.ok((await flight.clone(a, listed)).hasPack);
    assert.equal(stand.fetches(), 2);
    await until(() => flight.hasMirror(a, listed));
    await stand.uploaded(a, listed.name);
    assert.ok((await flight.clone(b, listed)).hasPack);
    assert.equal(stand.fetches(), 2);
  });

  it("lists it again while the request waits for its turn: its response is stored", async () => {
    const listed = await flight.repository([a, b]);
    const release = flight.hold(listed.name);
    // B waits for the fetch of A, and fetches when that ends without data for B.
    const first = flight.clone(a, listed);
    await until(() => stand.fetches() > 0);
    const second = flight.clone(b, listed);
    await sleep(1000);
    await flight.remove(a, "delete", listed.id);
    await stand.list(a.svc, listed.name);
    await flight.knows(b, listed.name);
    await sleep(KNOWN_MS);
    release();
    for (const response of [first, second]) assert.ok((await response).hasPack);
    assert.ok((await flight.clone(a, listed)).hasPack);
    await stand.uploaded(a, listed.name);
  });

  for (const how of removals)
    it(`${how}: ensure that waits is answered 404`, async () => {
      const listed = await flight.repository([a, b]);
      const release = flight.hold(listed.name);
      const body = JSON.stringify({ refs: { "refs/heads/main": listed.head }, timeout: 30 });
      const waiting = post(b, `${listed.name}.git/svc/ensure`, body);
      await until(() => stand.fetches() > 0);
      await flight.remove(a, how, listed.id);
      release();
      const { status, text } = await waiting;
      assert.equal(status, 404, text);
      await sleep(FILLED_MS);
      assert.equal(flight.hasMirror(b, listed), false);
    });

  it("ensure that waits during a purge fetches again", async () => {
    const listed = await flight.repository([a, b]);
    const release = flight.hold(listed.name);
    const body = JSON.stringify({ refs: { "refs/heads/main": listed.head }, timeout: 30 });
    const waiting = post(a, `${listed.name}.git/svc/ensure`, body);
    await until(() => stand.fetches() > 0);
    await stand.call(a.svc, "POST", `/api/cached-repos/${listed.id}/purge`);
    await sleep(KNOWN_MS);
    release();
    const { status, text } = await waiting;
    assert.equal(status, 200, text);
    assert.ok(flight.hasMirror(a, listed));
  });
});

describe("a repository is removed while the only instance fetches it", { timeout: 120_000 }, () => {
  let stand: InstancesStand;
  let flight: InFlight;
  let instance: Instance;
  before(async () => {
    stand = await InstancesStand.start({ database: "sqlite" });
    instance = await stand.addInstance("one");
    flight = new InFlight(stand);
  });
  afterEach(() => stand.host.clearFaults());
  after(async () => stand?.stop());

  for (const how of removals)
    it(`${how}: nothing is fetched or stored after it`, async () => {
      const listed = await flight.repository([instance]);
      const release = flight.hold(listed.name);
      const cloning = flight.clone(instance, listed);
      await until(() => stand.fetches() > 0);
      await flight.remove(instance, how, listed.id);
      release();
      assert.ok((await cloning).hasPack);
      await sleep(FILLED_MS);
      assert.equal(stand.fetches(), 1);
      assert.equal(flight.hasMirror(instance, listed), false);
    });
});
