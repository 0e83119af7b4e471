import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/git.test-kit.ts";
import { acquireLock } from "./lock-file.ts";

test("acquireLock rejects a second holder with locked, and succeeds after release", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "a.lock~");
  const lock = await acquireLock(path);
  await assert.rejects(acquireLock(path), { code: "locked", remedy: "retry" });
  const waiting = acquireLock(path, { waitMs: 5000 });
  await lock.release();
  const second = await waiting;
  await lock.release();
  assert.ok(existsSync(path), "a second release removed another's lock");
  await second.release();
  assert.deepEqual(readdirSync(folder.path), []);
});

test("acquireLock breaks the lock of a process that was killed", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "a.lock~");
  const module = new URL("lock-file.ts", import.meta.url).href;
  const code = `const { acquireLock } = await import(${JSON.stringify(module)});
    await acquireLock(${JSON.stringify(path)}); console.log("held"); setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  await assert.rejects(acquireLock(path), { code: "locked" });
  child.kill("SIGKILL");
  await once(child, "exit");
  const lock = await acquireLock(path, { waitMs: 2000 });
  await lock.release();
});

test("acquireLock breaks a lock of another machine after a minute without a touch", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "a.lock~");
  writeFileSync(path, "0123456789ab.77.0123456789ab 00\n");
  await assert.rejects(acquireLock(path), { code: "locked" });
  const then = new Date(Date.now() - 61_000);
  utimesSync(path, then, then);
  await using lock = await acquireLock(path);
  assert.doesNotMatch(readFileSync(path, "utf8"), /^0123456789ab/u);
  assert.ok(lock);
});

test("concurrent acquireLock calls on a stale lock succeed one at a time", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "a.lock~");
  writeFileSync(path, "");
  utimesSync(path, 1, 1);
  let inside = 0;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      await using lock = await acquireLock(path, { waitMs: 20_000 });
      assert.ok(lock);
      assert.equal(++inside, 1);
      await new Promise((resolve) => setTimeout(resolve, 5));
      inside--;
    }),
  );
  assert.deepEqual(readdirSync(folder.path), []);
});

test("acquireLock stops waiting when its signal says so", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "a.lock~");
  await using lock = await acquireLock(path);
  assert.ok(lock);
  const signal = AbortSignal.timeout(20);
  await assert.rejects(acquireLock(path, { waitMs: 60_000, signal }), { name: "TimeoutError" });
});
