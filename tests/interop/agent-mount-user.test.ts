import assert from "node:assert/strict";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, it } from "node:test";
import { readFile } from "node:fs/promises";
import { run, until } from "@devplat/testkit";
import { isMounted, quick } from "./agent-mount-stand.ts";
import { ORDINARY, isRoot } from "./agent-mount/hello-stand.ts";
import { UserStand, asStranger, killAll } from "./agent-mount/user-stand.ts";

const TIMEOUT_MS = 120_000;
const SHOWN = '{\n  "user": "ada",\n  "password": "first"\n}\n';

describe("the daemon of an ordinary user, with a mount by fusermount3", { timeout: TIMEOUT_MS }, () => {
  it("shows secrets to this user alone, and notes who opened them [agent 38.18]", async (context) => {
    const stand = await UserStand.create(context);
    const agent = await stand.start(context);
    assert.equal(await stand.read(), SHOWN);
    const line = (await readFile("/proc/self/mountinfo", "utf8"))
      .split("\n")
      .find((each) => each.includes(stand.mountpoint));
    assert.match(line ?? "", new RegExp(`user_id=${ORDINARY.uid},`));
    assert.doesNotMatch(line ?? "", /allow_other/);
    await until(
      () => /"path":"demo\/registry.json".*"program":"\/usr\/bin\/cat"/.test(agent.log()),
      () => agent.log(),
    );
    assert.doesNotMatch(agent.log(), /"first"/);
    const doctor = await stand.home.agent(["doctor"]);
    assert.match(doctor.stdout, /fusermount3: found/);
    assert.match(doctor.stdout, /mount: answers at /);
    if (!isRoot) return;
    const api = join(stand.runtime, "api.sock");
    for (const words of [[], [...asStranger]]) {
      const looked = await quick(...words, "cat", join(stand.mountpoint, "demo/registry.json"));
      assert.match(looked.stderr, /Permission denied/, words.join(" "));
      assert.equal(looked.stdout, "");
    }
    // The folder and the socket are both closed. The socket alone is enough.
    await run("chmod", ["0711", stand.home.path, join(stand.home.path, "run"), stand.runtime]);
    const asked = await quick(...asStranger, "curl", "-sS", "--unix-socket", api, "http://x/api/v1/status");
    assert.notEqual(asked.code, 0);
    assert.equal(asked.stdout, "");
  });

  it("names the programs with open files when it cannot unmount", async (context) => {
    const stand = await UserStand.create(context);
    await stand.start(context);
    const [program, ...words] = [...ORDINARY.words, "sh", "-c", 'exec sleep 60 < "$0"'];
    const reader = spawn(program, [...words, join(stand.mountpoint, "demo/registry.json")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    context.after(() => reader.kill("SIGKILL"));
    const named = new RegExp(
      `Close the programs that use it: sleep \\(${reader.pid ?? 0}\\)\\. Or run it with --lazy`,
    );
    await until(async () =>
      (await run("readlink", [`/proc/${reader.pid ?? 0}/exe`])).stdout.includes("sleep"),
    );
    const refused = await stand.home.agent(["unmount"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, named);
    assert.equal(await stand.read(), SHOWN);
    reader.kill("SIGKILL");
    await once(reader, "close");
    assert.match(await stand.home.ok("unmount"), /^Unmounted /);
  });

  it("unmounts at its end, and removes what a killed one has left", async (context) => {
    const stand = await UserStand.create(context);
    const first = await stand.start(context);
    assert.equal(await first.stop(), 0);
    assert.equal(await isMounted(stand.mountpoint), false);
    const second = await stand.start(context);
    await killAll(second);
    await until(
      async () => (await stand.read()).includes("not connected"),
      () => "the mount is not stale",
    );
    const third = await stand.start(context, stand.home, async () => (await stand.read()) === SHOWN);
    assert.match(third.log(), /a mount of an earlier run was removed/);
    assert.equal(await third.stop(), 0);
    assert.equal(await isMounted(stand.mountpoint), false);
  });
});
