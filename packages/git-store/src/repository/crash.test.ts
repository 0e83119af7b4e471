import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { randomFrom } from "@devplat/testkit/random";
import { buildRepository, git, temporaryFolder } from "../../test/git.test-kit.ts";
import { checkPackConnected } from "../connectivity.ts";
import { Repository } from "./repository.ts";

const SEED = Number(process.env["TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const KILLS = 6;

/** Receives packs in an endless loop, and moves the branch after each. */
const WRITER = `
  import { createReadStream } from "node:fs";
  import { Repository } from ENTRY;
  const [path, ...packs] = process.argv.slice(1);
  const repository = await Repository.open(path);
  await repository.removeLeftovers();
  for (let turn = 0; ; turn++) {
    const [oid, file] = packs[turn % packs.length].split("=");
    await repository.receivePack(createReadStream(file), { threads: 0 });
    await using lock = await repository.lock("refs", { waitMs: 60_000 });
    await repository.replaceRefs([{ name: "refs/heads/main", oid }]);
    if (turn % 2 === 0) process.stdout.write(".");
  }
`;

test(`Repository after kill -9 is clean, complete and usable (seed ${SEED})`, async () => {
  using folder = temporaryFolder();
  const random = randomFrom(SEED);
  const source = buildRepository(folder.path, "sha1", { commits: 30 });
  const packs: string[] = [];
  for (const back of [0, 5, 10, 15, 20, 25]) {
    const oid = git(source, ["rev-parse", `main~${back}`])
      .toString()
      .trim();
    const file = join(folder.path, `${back}.pack`);
    writeFileSync(file, git(source, ["pack-objects", "--stdout", "--revs", "-q"], `${oid}\n`));
    packs.push(`${oid}=${file}`);
  }
  const path = join(folder.path, "store.git");
  (await Repository.init(path)).close();
  const entry = JSON.stringify(new URL("../index.ts", import.meta.url).href);
  for (let kill = 0; kill < KILLS; kill++) {
    const code = WRITER.replace("ENTRY", entry);
    const child = spawn(process.execPath, ["--input-type=module", "-e", code, path, ...packs], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    await Promise.race([once(child.stdout, "data"), exited]);
    await new Promise((resolve) => setTimeout(resolve, random() * 40));
    child.kill("SIGKILL");
    assert.deepEqual(await exited, [null, "SIGKILL"]);
    const repository = await Repository.open(path);
    for (const pack of repository.objects.packs) checkPackConnected(repository.objects, pack);
    for (const { oid } of (await repository.refs()).values()) assert.ok(repository.objects.has(oid));
    repository.close();
    if (kill % 2 === 1) {
      assert.equal(git(path, ["fsck", "--full", "--no-dangling"]).toString(), "");
      // Gives the next rounds packs to write that are not there already.
      git(path, ["repack", "-adq"]);
    }
  }
  const repository = await Repository.open(path);
  await repository.removeLeftovers();
  assert.deepEqual(
    readdirSync(join(path, "objects/pack")).filter((name) => name.startsWith("tmp_")),
    [],
  );
  repository.close();
});
