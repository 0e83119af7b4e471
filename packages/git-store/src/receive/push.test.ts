import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import { RECEIVE_PACK_REQUEST, type ObjectFormat } from "@devplat/git-protocol";
import { encodeReceivePackRequest } from "@devplat/git-protocol/receive-pack";
import { git, run } from "@devplat/testkit";
import { buildRepository, git as gitSync, temporaryFolder } from "../../test/git.test-kit.ts";
import { createGitHandler, type GitPushOptions, type Push } from "../http/http.ts";
import { Repository } from "../repository/repository.ts";
import { refsOf, serve, tryGit } from "../../test/push.test-kit.ts";

for (const format of ["sha1", "sha256"] as const satisfies readonly ObjectFormat[]) {
  describe(`pushes of stock git, ${format}`, { timeout: 300_000 }, () => {
    let folder: ReturnType<typeof temporaryFolder>;
    let repository: Repository;
    let server: Awaited<ReturnType<typeof serve>>;
    let push: GitPushOptions;
    let path: string;
    let work: string;
    const errors: unknown[] = [];

    before(async () => {
      folder = temporaryFolder();
      push = { authorize: () => undefined };
      server = await serve({
        repository: () => repository,
        get push() {
          return push;
        },
        onError: (error) => errors.push(error),
      });
    });
    beforeEach(async () => {
      push = { authorize: () => undefined };
      const room = join(folder.path, randomBytes(4).toString("hex"));
      mkdirSync(room);
      path = buildRepository(room, format);
      repository = await Repository.open(path);
      work = join(room, "work");
      await git(["clone", "-q", path, work]);
      await git(["-C", work, "remote", "set-url", "origin", `${server.url}/demo.git`]);
    });
    after(async () => {
      await server.stop();
      folder[Symbol.dispose]();
      assert.deepEqual(errors, []);
    });

    const commit = async (text: string): Promise<string> => {
      appendFileSync(join(work, "dir0/file0.txt"), text);
      await git(["-C", work, "commit", "-qam", text.slice(0, 40)]);
      return git(["-C", work, "rev-parse", "HEAD"]);
    };
    const pushed = async (...args: string[]) => tryGit(["-C", work, "push", "origin", ...args]);
    const valueOf = async (name: string): Promise<string> =>
      git(["-C", path, "for-each-ref", "--format=%(objectname)", name]);
    const assertClean = async (): Promise<void> => {
      const fsck = await run("git", ["-C", path, "fsck", "--full", "--strict", "--no-dangling"]);
      assert.equal(fsck.code, 0, fsck.stderr);
      const left = readdirSync(path, { recursive: true, encoding: "utf8" });
      assert.deepEqual(
        left.filter((name) => /tmp_|\.lock$|\.keep$/u.test(name)),
        [],
      );
    };
    const accepted = async (...args: string[]): Promise<void> => {
      const result = await pushed(...args);
      assert.equal(result.code, 0, result.stderr);
      await assertClean();
    };
    const refused = async (text: RegExp, ...args: string[]): Promise<void> => {
      const earlier = await refsOf(path);
      const packs = readdirSync(join(path, "objects/pack"));
      const result = await pushed(...args);
      assert.notEqual(result.code, 0);
      assert.match(result.stderr, text);
      assert.equal(await refsOf(path), earlier);
      assert.deepEqual(readdirSync(join(path, "objects/pack")), packs);
      await assertClean();
    };

    it("creates, updates, forces and deletes branches and tags", async () => {
      const first = await commit("one");
      await accepted("HEAD:refs/heads/new");
      assert.equal(await valueOf("refs/heads/new"), first);
      const second = await commit("two");
      await git(["-C", work, "tag", "-a", "-m", "v2", "v2"]);
      await accepted("HEAD:new", "main", "v2", "HEAD:refs/heads/zweig-ü");
      assert.equal(await valueOf("refs/heads/new"), second);
      assert.equal(await valueOf("refs/heads/zweig-ü"), second);
      assert.equal(await valueOf("refs/tags/v2"), await git(["-C", work, "rev-parse", "v2"]));
      await accepted("--force", `${first}~3:new`);
      assert.equal(await valueOf("refs/heads/new"), await git(["-C", work, "rev-parse", `${first}~3`]));
      await accepted("--delete", "new", "v2");
      assert.equal(await valueOf("refs/heads/new"), "");
      const clone = join(work, "../clone.git");
      await git(["clone", "-q", "--mirror", `${server.url}/demo`, clone]);
      assert.equal(await refsOf(clone), await refsOf(path));
    });

    it("takes in thin packs, and large ones in chunks", async () => {
      await commit("x".repeat(100));
      await accepted("main");
      await commit("large ".repeat(400_000));
      await git(["-C", work, "config", "http.postBuffer", "65536"]);
      writeFileSync(join(work, "random"), randomBytes(3_000_000));
      await git(["-C", work, "add", "random"]);
      const tip = await commit("random");
      await accepted("main");
      assert.equal(await valueOf("refs/heads/main"), tip);
    });

    it("changes all refs of an atomic push or none, and else those that it can", async () => {
      const old = await valueOf("refs/heads/main");
      const tip = await commit("one");
      push = { ...push, update: (_, { name }) => (name.endsWith("/bad") ? "not this one" : undefined) };
      const names = ["HEAD:refs/heads/main", "HEAD:refs/heads/bad"];
      await refused(
        /main -> main \(atomic push failure\)|HEAD -> main \(atomic push failure\)/,
        "--atomic",
        ...names,
      );
      assert.equal(await valueOf("refs/heads/main"), old);
      const result = await pushed(...names);
      assert.notEqual(result.code, 0);
      assert.match(result.stderr, /HEAD -> bad \(not this one\)/);
      assert.equal(await valueOf("refs/heads/main"), tip);
      assert.equal(await valueOf("refs/heads/bad"), "");
      await accepted("--atomic", "HEAD:refs/heads/a", "HEAD:refs/heads/b");
    });

    it("calls the hooks with options and the new objects, and tells their texts", async () => {
      const tip = await commit("one");
      const calls: string[] = [];
      const seen = async (
        name: string,
        { repository: view, commands, pushOptions, environment, tell }: Push,
      ) => {
        tell(`this is ${name}`);
        const stock = await run("git", ["cat-file", "-t", tip], {
          env: { PATH: process.env["PATH"]!, ...environment },
        });
        calls.push(
          `${name} ${pushOptions.join(",")} ${commands.length} ${view.objects.info(tip).type} ${stock.stdout.trim()}`,
        );
      };
      let answer: string | undefined = "closed for today";
      push = {
        ...push,
        preReceive: async (each) => {
          await seen("preReceive", each);
          return answer;
        },
        update: (_, { name, newOid }) => void calls.push(`update ${name} ${newOid === tip}`),
        postReceive: async (each) => seen("postReceive", each),
      };
      await refused(/remote: this is preReceive[^]*closed for today/, "-o", "one", "-o", "zwei ü", "main");
      answer = undefined;
      const result = await pushed("-o", "x", "main");
      assert.match(result.stderr, /remote: this is postReceive/);
      assert.deepEqual(calls, [
        "preReceive one,zwei ü 1 commit commit",
        "preReceive x 1 commit commit",
        "update refs/heads/main true",
        "postReceive x 1 commit commit",
      ]);
      assert.equal(await valueOf("refs/heads/main"), tip);
    });

    it("refuses what the rules of the repository forbid", async () => {
      await commit("one");
      await refused(/deletion of the current branch prohibited/, "--delete", "main");
      push = { ...push, denyNonFastForwards: true, denyDeletes: true };
      await accepted("main", "HEAD:refs/heads/other");
      await refused(/non-fast-forward/, "--force", "HEAD~2:main");
      await refused(/deletion prohibited/, "--delete", "other");
      await refused(/funny refname/, "HEAD:refs/one");
      await refused(/has another type/, "HEAD^{tree}:refs/heads/tree");
      await refused(
        /main -> main\/x \(failed to update ref|HEAD -> main\/x \(failed to update ref/,
        "HEAD:refs/heads/main/x",
      );
      await git(["-C", path, "config", "core.bare", "false"]);
      repository = await Repository.open(path);
      const tip = await commit("two");
      await refused(/branch is currently checked out/, "main");
      await accepted("HEAD:refs/heads/other");
      assert.equal(await valueOf("refs/heads/other"), tip);
    });

    it("takes a push of a shallow clone whose history is here, and no other", async () => {
      const shallow = join(work, "../shallow");
      await git(["clone", "-q", "--depth=1", `${server.url}/demo`, shallow]);
      await git(["-C", shallow, "commit", "-q", "--allow-empty", "-m", "more"]);
      await git(["-C", shallow, "push", "-q", "origin", "HEAD:refs/heads/shallow"]);
      await assertClean();
      const empty = await Repository.init(join(work, "../empty.git"), { format });
      repository = empty;
      const result = await tryGit(["-C", shallow, "push", "origin", "HEAD:refs/heads/shallow"]);
      assert.match(result.stderr, /shallow update not allowed/);
      assert.equal((await empty.refs()).size, 0);
    });

    it("refuses a pack without an object that the new tip needs", async () => {
      const [tip, old] = [await commit("one"), await valueOf("refs/heads/main")];
      const tree = await git(["-C", work, "rev-parse", "HEAD^{tree}"]);
      const send = async (objects: string): Promise<string> => {
        const pack = gitSync(work, ["pack-objects", "--stdout", "-q"], objects);
        const command = { name: "refs/heads/main", oldOid: old, newOid: tip };
        const capabilities = ["report-status", `object-format=${format}`];
        const head = encodeReceivePackRequest(
          { commands: [command], capabilities, shallows: [], pushOptions: [], certificate: undefined },
          format,
        );
        const handler = createGitHandler({ repository: () => repository, push });
        const body = new Uint8Array(Buffer.concat([head, pack]));
        const headers = { "content-type": RECEIVE_PACK_REQUEST };
        const request = new Request("http://host/demo/git-receive-pack", { method: "POST", body, headers });
        return (await handler(request)).text();
      };
      assert.match(await send(`${tip}\n`), /unpack ok.*ng refs\/heads\/main missing necessary objects/s);
      assert.match(await send(`${tip}\n${tree}\n`), /missing necessary objects/);
      assert.equal(await valueOf("refs/heads/main"), old);
      await assertClean();
      const all = await git(["-C", work, "rev-list", "--objects", "--no-object-names", tip, `^${old}`]);
      assert.match(await send(`${all}\n`), /ok refs\/heads\/main/);
      await assertClean();
    });

    it("refuses a ref that two commands name, before any hook", async () => {
      const old = await valueOf("refs/heads/main");
      const calls: string[] = [];
      push = { ...push, preReceive: ({ commands }) => void calls.push(...commands.map(({ name }) => name)) };
      const command = (name: string) => ({ name, oldOid: undefined, newOid: old });
      const head = encodeReceivePackRequest(
        {
          commands: ["refs/heads/twice", "refs/heads/one", "refs/heads/twice"].map(command),
          capabilities: ["report-status", `object-format=${format}`],
          shallows: [],
          pushOptions: [],
          certificate: undefined,
        },
        format,
      );
      const body = new Uint8Array(
        Buffer.concat([head, gitSync(work, ["pack-objects", "--stdout", "-q"], "")]),
      );
      const headers = { "content-type": RECEIVE_PACK_REQUEST };
      const handler = createGitHandler({ repository: () => repository, push });
      const request = new Request("http://host/demo/git-receive-pack", { method: "POST", body, headers });
      const report = await (await handler(request)).text();
      assert.match(
        report,
        /ng refs\/heads\/twice multiple updates.*ok refs\/heads\/one.*ng refs\/heads\/twice/s,
      );
      assert.deepEqual(calls, ["refs/heads/one"]);
      assert.deepEqual([await valueOf("refs/heads/twice"), await valueOf("refs/heads/one")], ["", old]);
      await assertClean();
    });

    it("refuses a pack above its limit, and a damaged request", async () => {
      push = { ...push, limits: { packBytes: 10_000 } };
      writeFileSync(join(work, "random"), randomBytes(200_000));
      await git(["-C", work, "add", "random"]);
      await commit("random");
      await git(["-C", work, "config", "http.postBuffer", "4096"]);
      await refused(/more than 10000 bytes/, "main");
      const handler = createGitHandler({ repository: () => repository, push, maxRequestBytes: 1000 });
      const post = async (body: string, headers: Record<string, string> = {}) =>
        (
          await handler(
            new Request("http://host/demo/git-receive-pack", {
              method: "POST",
              body,
              headers: { "content-type": RECEIVE_PACK_REQUEST, ...headers },
            }),
          )
        ).status;
      assert.equal(await post("zzzz"), 400);
      assert.equal(await post(""), 400);
      assert.equal(await post("0000"), 200);
      assert.equal(await post("0000", { "content-length": "99999" }), 413);
      assert.equal(await post("0000", { "content-type": "text/plain" }), 415);
      assert.equal(await post("0000", { "content-encoding": "br" }), 415);
    });

    it("asks `push.authorize`, and serves no push without the option", async () => {
      await commit("one");
      push = {
        authorize: (_, { service }) =>
          new Response("no\n", { status: service === "git-receive-pack" ? 403 : 500 }),
      };
      await refused(/403/, "main");
      push = undefined as unknown as GitPushOptions;
      await refused(/403/, "main");
      assert.match(await git(["-C", work, "ls-remote", "origin", "HEAD"]), /HEAD$/);
    });

    it("lets one of several concurrent pushes to a ref win, while stock git works there", async () => {
      const clients = await Promise.all(
        [0, 1, 2, 3].map(async (at) => {
          const client = join(work, `../client${at}`);
          await git(["clone", "-q", `${server.url}/demo`, client]);
          await git(["-C", client, "commit", "-q", "--allow-empty", "-m", `by ${at}`]);
          return client;
        }),
      );
      const stock = (async () => {
        for (let turn = 0; turn < 5; turn++) {
          await git([
            "-C",
            path,
            "update-ref",
            "refs/heads/stock",
            turn % 2 === 0 ? "refs/tags/light" : "refs/heads/main",
          ]);
          await git(["-C", path, "pack-refs", "--all"]);
          await git(["-C", path, "repack", "-adq"]);
        }
      })();
      const results = await Promise.all(
        clients.map(async (client, at) => {
          const args = ["-C", client, "push", "origin", "HEAD:refs/heads/main", `HEAD:refs/heads/own/${at}`];
          return { at, result: await tryGit(args), tip: await git(["-C", client, "rev-parse", "HEAD"]) };
        }),
      );
      await stock;
      const winners = results.filter(
        ({ result }) => /HEAD -> main\n/.test(result.stderr) && result.code === 0,
      );
      assert.equal(winners.length, 1, results.map(({ result }) => result.stderr).join("\n"));
      assert.equal(await valueOf("refs/heads/main"), winners[0]!.tip);
      for (const { at, tip } of results) assert.equal(await valueOf(`refs/heads/own/${at}`), tip);
      await assertClean();
      assert.ok(existsSync(join(path, "packed-refs")));
    });
  });
}
