import assert from "node:assert/strict";
import { join } from "node:path";
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
