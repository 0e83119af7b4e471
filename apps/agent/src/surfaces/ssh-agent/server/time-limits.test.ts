import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { run, until } from "@devplat/testkit";
import { HandClock } from "../../../sync/clock.test-kit.ts";
import { RawClient } from "./raw-client.test-kit.ts";
import { MemorySource, identityOf, keysFolder, makeKey, startSshAgent } from "./ssh-agent.test-kit.ts";

/** Time limit of a signature. */
const SIGNATURE_MS = 30_000;

describe("time limits of the SSH agent", () => {
  it("a signature of an own key that cannot be opened is refused after 30 s", async () => {
    await using keys = await keysFolder();
    const clock = new HandClock();
    const source = new MemorySource("a", []);
    await using test = await startSshAgent({ sources: [source], clock });
    const key = await makeKey(keys.path, "own");
    let begun: AbortSignal | undefined;
    const sign = async (_data: Buffer, _hash: unknown, signal: AbortSignal): Promise<Buffer> => {
      begun = signal;
      await once(signal, "abort");
      throw signal.reason;
    };
    source.keys = [identityOf(key, "own", {}, { sign })];
    using client = await RawClient.connect(test.socket);
    const answer = client.ask({ type: "sign", key: key.blob, data: Buffer.from("data"), flags: 0 });
    await until(() => begun !== undefined);
    clock.advance(SIGNATURE_MS - 1);
    assert.equal(begun?.aborted, false);
    clock.advance(1);
    assert.deepEqual(await answer, { type: "failure" });
    assert.equal(test.agent.status().refusals[0]?.reason, "it was not possible in time");
  });

  it("a signature of a relayed agent whose user does not answer is refused after 30 s", async () => {
    await using keys = await keysFolder();
    const [own, theirs] = [await makeKey(keys.path, "own"), await makeKey(keys.path, "theirs")];
    const [socket, asked] = [join(keys.path, "other.sock"), join(keys.path, "asked")];
    const askpass = join(keys.path, "askpass");
    await writeFile(
      askpass,
      `#!/bin/sh\necho $$ > "${asked}.part"; mv "${asked}.part" "${asked}"\nexec sleep 600\n`,
      {
        mode: 0o700,
      },
    );
    const env = { ...process.env, SSH_AUTH_SOCK: socket, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: "force" };
    const other = spawn("ssh-agent", ["-D", "-a", socket], { stdio: "ignore", env });
    const ended = once(other, "exit");
    try {
      await until(() => existsSync(socket));
      assert.equal((await run("ssh-add", ["-q", "-c", theirs.path], { env })).code, 0);
      const clock = new HandClock();
      await using test = await startSshAgent({
        sources: [new MemorySource("a", [identityOf(own, "own")])],
        settings: { relay: [socket] },
        clock,
      });
      let isAnswered = false;
      const tried = test.run("ssh-add", ["-T", `${theirs.path}.pub`]).finally(() => (isAnswered = true));
      await until(
        () => existsSync(asked),
        () => JSON.stringify(test.agent.status()),
      );
      clock.advance(SIGNATURE_MS - 1);
      assert.equal((await test.run("ssh-add", ["-T", `${own.path}.pub`])).code, 0);
      assert.equal(isAnswered, false);
      clock.advance(1);
      assert.notEqual((await tried).code, 0);
      const { refusals, sources } = test.agent.status();
      assert.equal(refusals[0]?.reason, "the other agent refused the signature");
      assert.equal(sources.at(-1)?.error, "the agent does not answer in time");
      // It is not asked again for 8 s: the own keys are listed immediately.
      const listed = await test.run("ssh-add", ["-l"]);
      assert.match(listed.stdout, /^256 \S+ own \(ED25519\)\n$/);
    } finally {
      other.kill();
      await ended;
      process.kill(Number(await readFile(asked, "utf8")));
    }
  });
});
