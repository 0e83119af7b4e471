import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "@devplat/testkit";
import { mountAt, readMounts } from "../../apps/agent/src/surfaces/mount/device/mountinfo.ts";
import { UserStand, killAll } from "./agent-mount/user-stand.ts";

const TIMEOUT_MS = 120_000;
const POLL_MS = 50;
const BUSY_ROUNDS = 20;
const READ_SIZE = { maxReadBytes: 131_072 };

describe("two daemons of one user, each with a mount", { timeout: TIMEOUT_MS, concurrency: true }, () => {
  it("never unmount each other's mount [agent 38.25]", async (context) => {
    const [left, right] = await twoStands(context);
    const one = await left.start(context);
    const other = await right.start(context);
    await using watch = new Watch(right);
    await left.home.ok("unmount");
    await left.home.ok("mount");
    await killAll(one);
    const next = await left.start(context, left.home, async () => (await left.read()) === shown("left"));
    assert.match(next.log(), /a mount of an earlier run was removed/);
    assert.equal(await next.stop(), 0);
    assert.equal(await mountId(left), undefined);
    await watch.end();
    assert.equal(await right.read(), shown("right"));

    // A mount whose daemon was killed waits for its own daemon.
    const stale = await mountId(right);
    await killAll(other);
    assert.match((await right.home.agent(["doctor"])).stdout, /mount: .*has lost its server/);
    const again = await left.start(context);
    assert.equal(await left.read(), shown("left"));
    assert.equal(await again.stop(), 0);
    assert.equal(await mountId(right), stale);
    assert.match(await right.read(), /not connected/);
    const last = await right.start(context, right.home, async () => (await right.read()) === shown("right"));
    assert.match(last.log(), /a mount of an earlier run was removed/);
    assert.equal(await last.stop(), 0);
  });

  it("never unmount each other's mount by the mount helper [agent 38.25]", async (context) => {
    const [left, right] = await twoStands(context);
    await left.startHelper(context);
    await right.startHelper(context);
    const one = await left.start(context, left.hardened);
    const other = await right.start(context, right.hardened);
    assert.equal(await left.read(), shown("left"));
    {
      await using watch = new Watch(right);
      const path = right.mountpoint;
      for (const answer of await left.askEach([
        { action: "unmount", path, lazy: true },
        { action: "mount", path, ...READ_SIZE },
      ]))
        assert.match(answer, /^the mount helper mounts only at /);
      await left.hardened.ok("unmount");
      await left.hardened.ok("mount");
      await killAll(one);
      const next = await left.start(
        context,
        left.hardened,
        async () => (await left.read()) === shown("left"),
      );
      assert.match(next.log(), /a mount of an earlier run was removed/);
      assert.equal(await next.stop(), 0);
      await watch.end();
    }
    // Each helper mounts and unmounts while the other one does, and while a killed daemon's mount is there.
    const stale = await mountId(right);
    await killAll(other);
    const busy = Array.from({ length: BUSY_ROUNDS }, () => [
      { action: "mount", path: left.mountpoint, ...READ_SIZE },
      { action: "unmount", path: left.mountpoint, lazy: true },
    ]).flat();
    const ok = Array.from(busy, () => "ok");
    assert.deepEqual(await left.askEach(busy), ok);
    assert.equal(await mountId(right), stale);
    assert.match(await right.read(), /not connected/);
    const [answers, last] = await Promise.all([
      left.askEach(busy),
      right.start(context, right.hardened, async () => (await right.read()) === shown("right")),
    ]);
    assert.deepEqual(answers, ok);
    assert.match(last.log(), /a mount of an earlier run was removed/);
    await using watch = new Watch(right);
    assert.deepEqual(await left.askEach(busy), ok);
    await watch.end();
    assert.equal(await last.stop(), 0);
  });
});

async function twoStands(context: Parameters<typeof UserStand.create>[0]): Promise<[UserStand, UserStand]> {
  return await Promise.all([UserStand.create(context, "left"), UserStand.create(context, "right")]);
}

function shown(password: string): string {
  return `{\n  "user": "ada",\n  "password": "${password}"\n}\n`;
}

/** Id of the mount in the kernel's table. The kernel gives the id of a mount that is gone to the next one. */
async function mountId({ mountpoint }: UserStand): Promise<number | undefined> {
  return mountAt(await readMounts(), mountpoint)?.id;
}

/** Reads the secret of a mount again and again, which must be the same mount all the time. */
class Watch implements AsyncDisposable {
  readonly #stand: UserStand;
  readonly #faults: string[] = [];
  #reads = 0;
  #isRunning = true;
  readonly #ended: Promise<void>;

  constructor(stand: UserStand) {
    this.#stand = stand;
    this.#ended = this.#watch();
  }

  /** Fails if the mount was away, or a read has failed. */
  async end(): Promise<void> {
    await until(() => this.#reads > 1 || this.#faults.length > 0);
    await this[Symbol.asyncDispose]();
    assert.deepEqual(this.#faults, []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isRunning = false;
    await this.#ended;
  }

  async #watch(): Promise<void> {
    const first = await mountId(this.#stand);
    if (first === undefined) this.#faults.push("there is no mount");
    while (this.#isRunning && this.#faults.length === 0) {
      const text = await this.#stand.read();
      if (text !== shown("right")) this.#faults.push(text);
      const now = await mountId(this.#stand);
      if (now !== first) this.#faults.push(`the mount ${first} is now ${now}`);
      this.#reads++;
      await sleep(POLL_MS);
    }
  }
}
