import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { silentLogger, systemClock, Secret, type Clock } from "@devplat/base";
import { SecretStoreError, type TokenInfo } from "@devplat/secret-store";
import { HandClock } from "../sync/clock.test-kit.ts";
import { TokenSignIn, type TokenSignInParts } from "./sign-in.ts";
import { TokenFile } from "./token/token-file.ts";
import { tokenInfo } from "./token/token-info.test-kit.ts";
import { TokenKeeper } from "./token-keeper.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "keeper-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const INFO = tokenInfo({ entityId: "e", displayName: "ada", renewable: true });

/** Without waiting for a disk, during which a fast clock would run on. */
const pin = { check: () => Promise.resolve(), adopt: () => Promise.resolve() };
function unchanging(name: string) {
  const token = new Secret("token");
  return {
    path: join(folder, name),
    read: () => Promise.resolve(token),
    signature: () => Promise.resolve("same"),
  };
}

function keeper(
  name: string,
  clock: Clock,
  infoOf: (token: string) => TokenInfo | undefined | Promise<TokenInfo>,
  tokenFile: TokenSignInParts["tokenFile"] = unchanging(name),
  maintain: () => Promise<unknown> = () => Promise.resolve(),
) {
  const renewed: string[] = [];
  const signIn = new TokenSignIn({
    environment: {},
    tokenFile,
    pin,
    api: {
      lookup: async (token: Secret) => {
        const info = await infoOf(token.reveal());
        if (info === undefined) throw new SecretStoreError("unauthenticated", "no");
        return info;
      },
      renew: async (token) => void renewed.push(token.reveal()),
    },
    borrow: async function* () {},
    automatic: undefined,
    renewal: true,
    clock,
    logger: silentLogger,
  });
  let wakes = 0;
  const onWake = (): void => void (wakes += 1);
  const peers = { retryInMs: () => undefined };
  const subject = new TokenKeeper({
    signIn,
    tokenFile,
    peers,
    maintain,
    onWake,
    clock,
    logger: silentLogger,
  });
  return { subject, signIn, renewed, wakes: () => wakes, path: tokenFile.path };
}

/** A clock whose sleeps end immediately and move its time, so that a day passes quickly. */
class FastClock implements Clock {
  wall = 1_000_000;
  steady = 0;
  sleeps = 0;
  now = (): number => this.wall;
  monotonic = (): number => this.steady;
  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
    this.sleeps += 1;
    this.wall += ms;
    this.steady += ms;
  }
}

describe("TokenKeeper", () => {
  it("notices a new token file immediately, not at the next look [agent 10.23]", async () => {
    const { subject, signIn, path } = keeper(
      "noticed",
      systemClock,
      () => INFO,
      new TokenFile(join(folder, "noticed")),
    );
    const stop = new AbortController();
    const running = subject.run(stop.signal);
    const signedIn = new Promise<void>((resolve) => signIn.onChange(resolve));
    await new Promise((resolve) => setTimeout(resolve, 50));
    await writeFile(path, "token", { mode: 0o600 });
    // The next look by time is half a minute away: without the watch this would end by the test's time-out.
    await signedIn;
    assert.equal(signIn.state().source, "file");
    stop.abort();
    await running;
  });

  it("notices a token file that changes while it looks at the one before", async () => {
    const settled = Promise.withResolvers<void>();
    // No time passes: only the watch can bring the second look.
    const still: Clock = {
      now: () => 1_000_000,
      monotonic: () => 0,
      sleep: async (ms, signal) => {
        if (ms < 1000) return settled.resolve();
        signal?.throwIfAborted();
        await new Promise((_resolve, reject) =>
          signal?.addEventListener("abort", () => reject(new Error("aborted")), { once: true }),
        );
      },
    };
    const file = new TokenFile(join(folder, "changing"));
    await writeFile(file.path, "first", { mode: 0o600 });
    const second = Promise.withResolvers<void>();
    const seen: string[] = [];
    const { subject } = keeper(
      "changing",
      still,
      async (token) => {
        seen.push(token);
        if (token === "first") {
          await writeFile(file.path, "second", { mode: 0o600 });
          await settled.promise;
        } else second.resolve();
        return INFO;
      },
      file,
    );
    const stop = new AbortController();
    const running = subject.run(stop.signal);
    // Without the second look this would end by the test's time-out.
    await second.promise;
    stop.abort();
    await running;
    assert.deepEqual(seen, ["first", "second"]);
  });

  it("renews again and again over a day, each time before the end [agent 10.19]", async () => {
    const clock = new FastClock();
    let end = clock.wall + 3_600_000;
    const stop = new AbortController();
    const parts = keeper("day", clock, () => ({ ...INFO, creationTtlSeconds: 3600, expiresAt: end }));
    const { subject, signIn, renewed } = parts;
    const dayAt = clock.wall + 86_400_000;
    const left: number[] = [];
    const push = renewed.push.bind(renewed);
    renewed.push = (token) => {
      left.push(end - clock.wall);
      end = clock.wall + 3_600_000;
      if (clock.wall > dayAt) stop.abort();
      return push(token);
    };
    await subject.run(stop.signal);
    assert.ok(left.length >= 20, `${left.length} renewals`);
    assert.ok(
      // The clock's two sleepers both move it, so that it may be late by the time of a look.
      left.every((ms) => ms > 550_000 && ms <= 900_000),
      `at the begin of the last quarter: ${left.join(" ")}`,
    );
    assert.equal(signIn.state().authenticated, true);
  });

  it("looks every five minutes, also after a token without end [agent 10.20]", async () => {
    const clock = new HandClock();
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    let looks = 0;
    const { subject } = keeper(
      "regular",
      clock,
      () => INFO,
      undefined,
      () => Promise.resolve(looks++),
    );
    const stop = new AbortController();
    const running = subject.run(stop.signal);
    for (let times = 1; times <= 3; times++) {
      await turn();
      assert.equal(looks, times);
      clock.advance(5 * 60_000 - 1);
      await turn();
      assert.equal(looks, times, "too early");
      clock.advance(1);
    }
    stop.abort();
    await running;
  });

  it("looks again when the wall clock moved against the steady one: sleep, clock set [agent 10.24]", async () => {
    const clock = new FastClock();
    const { subject, wakes } = keeper("slept", clock, () => undefined);
    const stop = new AbortController();
    const running = subject.run(stop.signal);
    const passes = async (sleeps: number): Promise<void> => {
      for (const until = clock.sleeps + sleeps; clock.sleeps < until;) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await passes(10);
    assert.equal(wakes(), 0);
    clock.wall += 3_600_000;
    await passes(10);
    assert.equal(wakes(), 1);
    clock.wall -= 60_000;
    await passes(10);
    assert.equal(wakes(), 2);
    stop.abort();
    await running;
  });
});
