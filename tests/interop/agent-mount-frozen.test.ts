import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { run, until, whileHanging } from "@devplat/testkit";
import { isMounted, mountStand, quick, type MountStand } from "./agent-mount-stand.ts";

const TIMEOUT_MS = 480_000;
/** States of a process that waits in the kernel (proc_pid_stat(5)). */
const WAITING = /^[SD]$/;

describe("a mount", { timeout: TIMEOUT_MS, concurrency: true }, () => {
  describe("whose server is frozen (SIGSTOP)", { concurrency: false }, () => {
    let stand: MountStand;
    before(async () => {
      stand = await mountStand("agent-mount-frozen");
    });
    after(() => stand.remove());
    const server = async (): Promise<number> => {
      const { stdout } = await run("pgrep", ["-P", String(stand.agent.pid)], {});
      return Number(stdout.trim());
    };

    it("keeps ls waiting, which can be killed, until the daemon replaces the server", async () => {
      const frozen = await server();
      process.kill(frozen, "SIGSTOP");
      const killed = spawn("ls", ["-l", stand.at("demo")], { stdio: "ignore" });
      const waiting = spawn("cat", [stand.at("demo/registry.json")], { stdio: "ignore" });
      const state = async (): Promise<string> =>
        (await run("ps", ["-o", "state=", "-p", String(killed.pid)], {})).stdout.trim();
      await until(async () => WAITING.test(await state()));
      const ended = once(killed, "exit");
      killed.kill("SIGKILL");
      assert.deepEqual(await ended, [null, "SIGKILL"]);
      const failed = once(waiting, "exit");
      // The daemon asks every 5 s.
      await sleep(5500);
      await until(
        async () =>
          (await stand.place.ok("status")).includes("Problem:    the mount server does not respond"),
        () => stand.agent.log(),
      );
      assert.notEqual((await failed)[0], 0);
      await until(
        async () => (await quick("cat", stand.at("demo/registry.json"))).code === 0,
        () => stand.agent.log(),
      );
      assert.notEqual(await server(), frozen);
      assert.match(stand.agent.log(), /it has not responded for 10 s/);
      assert.match(await stand.place.ok("status"), /Mounted: {4}yes\n(?! *Problem)/);
    });

    it("goes away with agent unmount --lazy, also while files are open", async () => {
      const holder = spawn(
        "sh",
        ["-c", 'exec < "$0"; echo open; exec sleep 60', stand.at("demo/registry.json")],
        {
          stdio: ["ignore", "pipe", "ignore"],
        },
      );
      await once(holder.stdout, "data");
      try {
        await whileHanging(await server(), async () => {
          assert.match((await stand.place.agent(["unmount"])).stderr, /run it with --lazy/);
          assert.match(await stand.place.ok("unmount", "--lazy"), /^Unmounted /);
          assert.equal(await isMounted(stand.mountpoint), false);
          assert.equal((await quick("ls", stand.mountpoint)).stdout, "");
        });
      } finally {
        holder.kill("SIGKILL");
      }
      await until(
        async () => (await stand.place.ok("status")).includes("Mounted:    no"),
        () => stand.agent.log(),
      );
    });
  });

  describe("whose daemon is frozen (SIGSTOP)", { concurrency: false }, () => {
    let stand: MountStand;
    before(async () => {
      stand = await mountStand("agent-mount-frozen-daemon", "cache_ttl: 5m");
      await stand.store("other/key", '{"a": "b"}');
    });
    after(() => stand.remove());

    it("goes on with its cache, and answers ETIMEDOUT for the rest after 30 s", async () => {
      const known = stand.at("demo/registry.json");
      const content = (await quick("cat", known)).stdout;
      assert.equal((await quick("ls", stand.mountpoint)).stdout, "demo\nother\n");
      await whileHanging(stand.agent.pid ?? 0, async () => {
        const start = performance.now();
        const missed = run("cat", [stand.at("other/key.json")], { env: { ...process.env, LC_ALL: "C" } });
        while (performance.now() - start < 2000) assert.equal((await quick("cat", known)).stdout, content);
        assert.match((await missed).stderr, /timed out/);
        const seconds = (performance.now() - start) / 1000;
        assert.ok(seconds > 28 && seconds < 40, `${seconds} s`);
        const again = performance.now();
        assert.notEqual((await quick("cat", stand.at("other/key.json"))).code, 0);
        assert.ok(performance.now() - again < 2000);
        assert.equal((await quick("cat", known)).stdout, content);
      });
      await until(async () => (await quick("cat", stand.at("other/key.json"))).code === 0);
      assert.doesNotMatch(stand.agent.log(), /is started again/);
    });
  });
});
