import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, beforeEach, describe, it } from "node:test";
import { randomFrom } from "@devplat/testkit/random";
import { testSeed } from "@devplat/testkit";
import { buildRepository, git, temporaryFolder, tryGit } from "../../test/git.test-kit.ts";
import { GitStoreError } from "../errors.ts";
import { temporaryName } from "../repository/leftovers.ts";
import { Repository } from "../repository/repository.ts";
import { RefLock } from "./ref-lock.ts";
import { updateEachRef, updateRefs, type RefUpdate } from "./update-refs.ts";

/** A folder with a lock of another program. */
const BUSY = "refs/heads/busy";

for (const format of ["sha1", "sha256"] as const) {
  describe(`updateRefs, ${format}`, () => {
    let folder: ReturnType<typeof temporaryFolder>;
    let repository: Repository;
    let path: string;
    let oids: string[];
    beforeEach(async () => {
      folder?.[Symbol.dispose]();
      folder = temporaryFolder();
      path = buildRepository(folder.path, format);
      oids = git(path, ["rev-list", "main"]).toString().trim().split("\n");
      repository?.close();
      repository = await Repository.open(path);
    });
    after(() => {
      repository.close();
      folder[Symbol.dispose]();
    });
    const refs = (): string[] =>
      git(path, ["for-each-ref", "--format=%(refname) %(objectname)"]).toString().trim().split("\n");
    const valueOf = (name: string): string | undefined =>
      refs()
        .find((line) => line.startsWith(`${name} `))
        ?.split(" ")[1];
    const set = (name: string, newOid: string | undefined, oldOid = "any"): RefUpdate => ({
      name,
      oldOid: oldOid === "any" ? undefined : oldOid === "none" ? null : oldOid,
      newOid,
    });
    const codeOf = async (...updates: RefUpdate[]): Promise<string> => {
      const earlier = refs();
      try {
        await updateRefs(repository, updates);
        return "none";
      } catch (error) {
        assert.ok(error instanceof GitStoreError, String(error));
        assert.deepEqual(refs(), earlier);
        return error.code;
      } finally {
        assertNoLocks();
      }
    };
    const assertNoLocks = (): void => {
      const left = readdirSync(path, { recursive: true, encoding: "utf8" });
      assert.deepEqual(
        left.filter((name) => /\.lock$|tmp_/u.test(name) && !name.includes(BUSY)),
        [],
      );
    };

    it("creates, changes and deletes refs as stock git reads them", async () => {
      await updateRefs(repository, [
        set("refs/heads/new/deep", oids[1], "none"),
        set("refs/heads/main", oids[2], oids[0]),
        set("refs/tags/light", undefined),
      ]);
      assert.equal(valueOf("refs/heads/new/deep"), oids[1]);
      assert.equal(valueOf("refs/heads/main"), oids[2]);
      assert.equal(valueOf("refs/tags/light"), undefined);
      assert.ok(valueOf("refs/tags/v1") !== undefined);
      git(path, ["fsck", "--full", "--strict", "--no-dangling"]);
      // The second deletion leaves no empty folder, so that its name is free.
      await updateRefs(repository, [set("refs/heads/new/deep", undefined, oids[1])]);
      assert.ok(!existsSync(join(path, "refs/heads/new")));
      await updateRefs(repository, [set("refs/heads/new", oids[3], "none")]);
      assert.equal(valueOf("refs/heads/new"), oids[3]);
      assertNoLocks();
    });

    it("deletes a ref that is packed, loose or both, and keeps the other packed lines", async () => {
      git(path, ["pack-refs", "--all"]);
      const text = readFileSync(join(path, "packed-refs"), "utf8");
      assert.match(text, /refs\/tags\/v1\n\^/);
      git(path, ["update-ref", "refs/heads/main", oids[4]!]);
      git(path, ["update-ref", "refs/heads/loose", oids[4]!]);
      await updateRefs(repository, [
        set("refs/heads/main", undefined, oids[4]),
        set("refs/heads/loose", undefined),
        set("refs/heads/none", undefined),
      ]);
      assert.equal(valueOf("refs/heads/main"), undefined);
      assert.equal(valueOf("refs/heads/loose"), undefined);
      assert.equal(
        readFileSync(join(path, "packed-refs"), "utf8"),
        text.replace(/.* refs\/heads\/main\n/, ""),
      );
      await updateRefs(repository, [set("refs/tags/v1", undefined)]);
      assert.doesNotMatch(readFileSync(join(path, "packed-refs"), "utf8"), /v1|\^/);
    });

    it("changes nothing if one update is refused", async () => {
      const good = set("refs/heads/good", oids[0]);
      git(path, ["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
      mkdirSync(join(path, BUSY));
      writeFileSync(join(path, BUSY, "x.lock"), "");
      const rows: [string, RefUpdate[], string][] = [
        ["another value", [set("refs/heads/main", oids[1], oids[1])], "ref_changed"],
        ["a ref that exists", [set("refs/heads/main", oids[1], "none")], "ref_changed"],
        ["a ref that does not exist", [set("refs/heads/none", oids[1], oids[1])], "ref_changed"],
        ["a folder that is a ref", [set("refs/heads/main/x", oids[1])], "ref_conflict"],
        ["a symbolic ref", [set("refs/heads/alias", oids[1])], "ref_conflict"],
        ["a folder with a lock", [set(BUSY, oids[1])], "ref_conflict"],
        ["a name twice", [set("refs/heads/a", oids[1]), set("refs/heads/a", oids[1])], "ref_conflict"],
        [
          "two names that conflict",
          [set("refs/heads/a", oids[1]), set("refs/heads/a/b", oids[1])],
          "ref_conflict",
        ],
        ["a bad name", [set("refs/heads/a..b", oids[1])], "bad_ref_name"],
        ["a way out", [set("refs/../config", oids[1])], "bad_ref_name"],
        ["HEAD", [set("HEAD", oids[1])], "bad_ref_name"],
        ["a bad id", [set("refs/heads/a", "abc")], "bad_oid"],
      ];
      for (const isPacked of [false, true]) {
        if (isPacked) git(path, ["pack-refs", "--all"]);
        for (const [what, updates, code] of rows) assert.equal(await codeOf(good, ...updates), code, what);
      }
      git(path, ["update-ref", "refs/heads/deep/er", oids[0]!]);
      assert.equal(await codeOf(set("refs/heads/deep", oids[0])), "ref_conflict");
      git(path, ["pack-refs", "--all"]);
      assert.equal(await codeOf(set("refs/heads/deep", oids[0])), "ref_conflict");
    });

    it("changes the refs that can be changed, each on its own", async () => {
      const failures = await updateEachRef(repository, [
        set("refs/heads/good", oids[0]),
        set("refs/heads/main", oids[1], oids[1]),
        set("refs/tags/light", undefined),
      ]);
      assert.deepEqual(
        [...failures].map(([name, { code }]) => [name, code]),
        [["refs/heads/main", "ref_changed"]],
      );
      assert.equal(valueOf("refs/heads/good"), oids[0]);
      assert.equal(valueOf("refs/heads/main"), oids[0]);
      assert.equal(valueOf("refs/tags/light"), undefined);
      assertNoLocks();
    });

    it("fails a name that is too long or named twice alone, and takes no lock", async () => {
      const long = `refs/heads/${"x".repeat(300)}`;
      const failures = await updateEachRef(repository, [
        set("refs/heads/twice", oids[0]),
        set(long, oids[0]),
        set("refs/heads/twice", oids[1]),
        set("refs/heads/good", oids[0]),
      ]);
      assert.deepEqual(
        [...failures]
          .map(([name, { code }]) => [name, code])
          .toSorted(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
        [
          ["refs/heads/twice", "ref_conflict"],
          [long, "bad_ref_name"],
        ],
      );
      assert.equal(valueOf("refs/heads/twice"), undefined);
      assert.equal(valueOf("refs/heads/good"), oids[0]);
      assertNoLocks();
    });

    it("keeps the bytes of packed names that are not UTF-8", async () => {
      git(path, ["pack-refs", "--all"]);
      const file = join(path, "packed-refs");
      const names = [
        Buffer.from("refs/heads/zweig-\xe4", "latin1"),
        Buffer.from("refs/heads/zweig-\xfc", "latin1"),
      ];
      const lines = names.map((name) => Buffer.concat([Buffer.from(`${oids[0]} `), name, Buffer.from("\n")]));
      writeFileSync(file, Buffer.concat([readFileSync(file), ...lines]));
      await updateRefs(repository, [set("refs/tags/light", undefined)]);
      const left = readFileSync(file);
      for (const line of lines) assert.ok(left.includes(line));
      assert.ok(!left.includes("refs/tags/light"));
    });

    it("puts a ref in place of an empty folder, and releases a lock once", async () => {
      const lock = await RefLock.acquire(path, "refs/heads/late", `${oids[0]}\n`, 0);
      mkdirSync(join(path, "refs/heads/late/below"), { recursive: true });
      await lock.commit();
      assert.equal(valueOf("refs/heads/late"), oids[0]);
      const first = await RefLock.acquire(path, "refs/heads/late", "", 0);
      await first.release();
      const second = await RefLock.acquire(path, "refs/heads/late", "", 0);
      await first.release();
      await lock.release();
      await assert.rejects(RefLock.acquire(path, "refs/heads/late", "", 0), { code: "locked" });
      await second.release();
      assertNoLocks();
    });

    it("respects the locks of git, and waits for them", async () => {
      git(path, ["config", "core.filesRefLockTimeout", "50"]);
      git(path, ["config", "core.packedRefsTimeout", "50"]);
      repository.close();
      repository = await Repository.open(path);
      const names = ["refs/heads/main", "packed-refs", "HEAD"];
      for (const name of names) {
        writeFileSync(join(path, `${name}.lock`), "");
        const update =
          name === "packed-refs" ? set("refs/tags/light", undefined) : set("refs/heads/main", oids[1]);
        await assert.rejects(updateRefs(repository, [update]), (error: GitStoreError) => {
          assert.equal(error.code, "locked");
          assert.match(error.message, new RegExp(`${name}\\.lock. If no git process works`));
          return true;
        });
        git(path, ["update-ref", "refs/heads/free", oids[0]!]);
        rmSync(join(path, `${name}.lock`));
        assertNoLocks();
      }
      writeFileSync(join(path, "refs/heads/main.lock"), "");
      const refused = tryGit(path, [
        "-c",
        "core.filesRefLockTimeout=0",
        "update-ref",
        "refs/heads/main",
        oids[1]!,
      ]);
      assert.notEqual(refused.status, 0);
    });

    it("removes the lock of a killed process, and no other", async () => {
      // A process that ends with its lock held.
      const code = `
        import { RefLock } from ${JSON.stringify(new URL("./ref-lock.ts", import.meta.url).href)};
        for (const file of ["refs/heads/main", "HEAD", "packed-refs"]) await RefLock.acquire(process.argv[1], file, "", 0);
        process.kill(process.pid, "SIGKILL");
      `;
      const child = spawn(process.execPath, ["--input-type=module", "-e", code, path], { stdio: "inherit" });
      await once(child, "exit");
      assert.ok(existsSync(join(path, "refs/heads/main.lock")));
      // A lock of this process, which runs.
      const own = join(path, temporaryName("reflock"));
      writeFileSync(own, "");
      linkSync(own, join(path, "refs/heads/other.lock"));
      await updateRefs(repository, [set("refs/heads/main", undefined)]);
      assert.equal(valueOf("refs/heads/main"), undefined);
      assert.ok(existsSync(join(path, "refs/heads/other.lock")));
    });

    it("writes reflogs where asked, and removes those of deleted refs", async () => {
      const log = (name: string): string =>
        git(path, ["reflog", "show", "--format=%H %gs %gn", name]).toString();
      await updateRefs(repository, [set("refs/heads/main", oids[1])]);
      assert.ok(!existsSync(join(path, "logs")));
      git(path, ["config", "core.logAllRefUpdates", "true"]);
      repository.close();
      repository = await Repository.open(path);
      const identity = { name: "Ada <x>", email: "ada@example.org" };
      await updateRefs(repository, [set("refs/heads/main", oids[2])], { message: "push\nof two", identity });
      await updateRefs(repository, [set("refs/heads/main", oids[3]), set("refs/tags/x", oids[3])], {
        identity,
      });
      for (const name of ["main", "HEAD"]) {
        assert.equal(log(name), `${oids[3]} update Ada x\n${oids[2]} push of two Ada x\n`, name);
      }
      assert.ok(!existsSync(join(path, "logs/refs/tags/x")));
      git(path, ["reflog", "expire", "--expire=now", "--all"]);
      await updateRefs(repository, [set("refs/heads/main", undefined)]);
      assert.ok(!existsSync(join(path, "logs/refs/heads/main")));
      assert.ok(existsSync(join(path, "logs/refs/heads")) || existsSync(join(path, "logs/HEAD")));
      git(path, ["fsck", "--full", "--no-dangling"]);
    });

    it("loses no update while stock git changes, packs and deletes the same refs", async () => {
      const random = randomFrom(testSeed());
      const pick = (): string => oids[Math.floor(random() * oids.length)]!;
      const names = ["refs/heads/a", "refs/heads/b/c", "refs/heads/d"];
      // Each side has a ref of its own besides the shared ones, whose value nobody else changes.
      const mine = new Map<string, string | undefined>();
      const script = `
        i=0
        while [ $i -lt 40 ]; do
          git update-ref refs/heads/theirs $1; git pack-refs --all
          git update-ref refs/heads/a $1; git update-ref -d refs/heads/b/c; git update-ref refs/heads/d $2
          git update-ref -d refs/heads/theirs; git update-ref refs/heads/theirs $2
          i=$((i+1))
        done`;
      const env = { PATH: process.env["PATH"], GIT_CONFIG_GLOBAL: "/dev/null", GIT_DIR: path };
      const child = spawn("sh", ["-c", script, "sh", oids[0]!, oids[1]!], { env, stdio: "ignore" });
      const ended = once(child, "exit");
      let rounds = 0;
      for (; child.exitCode === null || rounds < 20; rounds++) {
        const name = `refs/heads/mine/${rounds % 3}`;
        const value = random() < 0.3 ? undefined : pick();
        await updateRefs(repository, [set(name, value, mine.get(name) ?? "none")]);
        mine.set(name, value);
        const failures = await updateEachRef(
          repository,
          names.map((each) => set(each, random() < 0.3 ? undefined : pick())),
        );
        for (const { code } of failures.values()) assert.ok(["locked", "ref_conflict"].includes(code), code);
        for (const [each, expected] of mine) assert.equal((await repository.refs()).get(each)?.oid, expected);
      }
      await ended;
      for (const [name, value] of mine) assert.equal(valueOf(name), value);
      assert.equal(valueOf("refs/heads/theirs"), oids[1]);
      assertNoLocks();
      git(path, ["fsck", "--full", "--no-dangling"]);
    });
  });
}
