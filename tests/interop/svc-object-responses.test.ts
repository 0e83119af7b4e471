import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { after, before, beforeEach, describe, it } from "node:test";
import { git, repositories, startCodeHost } from "@devplat/testkit";
import { S3_SERVERS } from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import { basic, command, contentOf, type Answer } from "./svc-git-stand.ts";
import { startTwoInstances, type ObjectStand, type TwoInstances } from "./svc-object-stand.ts";

const ALICE = { Authorization: basic("alice-token") };
const LS_REFS = command("ls-refs", ["ref-prefix refs/heads/"]);

const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

for (const [serverName, startServer] of S3_SERVERS) {
  describe(`stored responses in a bucket: ${serverName}`, { timeout: 480_000 }, () => {
    let two: TwoInstances;
    let template = "";
    let name = "";
    let count = 0;
    before(async () => {
      const codeHost = await startCodeHost();
      codeHost.addUser("alice", "alice-token");
      codeHost.addUser("bob", "bob-token");
      two = await startTwoInstances(startServer, codeHost, { fill: "wants", grantSeconds: 30 });
      ({ path: template } = await codeHost.addRepository("org", "template", { build: repositories.merges }));
    });
    beforeEach(() => {
      name = `r${++count}`;
      two.bucket.proxy.heal();
      two.bucket.proxy.resetCounts();
    });
    after(async () => two.stop());

    interface Added {
      readonly path: string;
      readonly fetch: Buffer;
    }
    const add = async (isPrivate = false): Promise<Added> => {
      const { path } = await two.codeHost.addRepository("org", name, {
        private: isPrivate,
        build: (dir) => cp(template, dir, { recursive: true }),
      });
      for (const stand of [two.a, two.b]) stand.list("org", name);
      const oid = await git(["-C", path, "rev-parse", "refs/heads/main"]);
      return { path, fetch: command("fetch", ["no-progress", `want ${oid}`, "done"]) };
    };
    const clone = async (stand: ObjectStand, to: string): Promise<void> => {
      const result = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/${name}`, to]);
      assert.equal(result.code, 0, result.stderr);
    };
    const fetches = (): number => two.a.upstream("fetch");
    const bytesFromBucket = async (stand: ObjectStand): Promise<number> =>
      stand.metric('svc_cache_bytes_total{source="object"}');
    /** A has the response of a clone, and has uploaded it. */
    const cachedByA = async (): Promise<string> => {
      const { path } = await add();
      for (let at = 0; at < 3; at++) {
        await clone(two.a, `${name}-a${at}`);
        await two.a.cache.settled();
      }
      await two.a.uploaded();
      assert.equal((await two.a.manifest(name))?.responses.length, 1);
      two.codeHost.resetCalls();
      return path;
    };

    it("what A cached, B serves as a hit without a fetch from the code host", async () => {
      const path = await cachedByA();
      const bytes = await bytesFromBucket(two.b);
      const hits = await two.b.metric('svc_cache_fetch_total{result="hit"}');
      await clone(two.b, `${name}-b`);
      assert.equal(fetches(), 0);
      assert.equal(await contentOf(two.b.folder(`${name}-b`)), await contentOf(path));
      assert.ok((await bytesFromBucket(two.b)) > bytes);
      assert.equal(await two.b.metric('svc_cache_fetch_total{result="hit"}'), hits + 1);
      await two.b.cache.settled();
      two.bucket.proxy.resetCounts();
      await clone(two.b, `${name}-b2`);
      assert.equal(total(two.bucket.proxy.counts), 0, "a local hit sends no request to the bucket");
      assert.equal(fetches(), 0);
    });

    it("the first use after a start asks the bucket once, and never for a list", async () => {
      const { fetch } = await add();
      two.bucket.proxy.resetCounts();
      const answer = await two.b.post(`org/${name}`, fetch);
      assert.equal(answer.headers["x-svc-cache"], "miss");
      assert.equal(two.bucket.proxy.counts.get, 1);
      assert.equal(two.bucket.proxy.counts.list, 0);
    });

    it("nobody reads what only A has cached without an authorization of B's own", async () => {
      const { fetch } = await add(true);
      await two.a.post(`org/${name}`, LS_REFS, ALICE);
      for (let at = 0; at < 3; at++) {
        const answer = await two.a.post(`org/${name}`, fetch, ALICE);
        assert.match(answer.text, /PACK/);
        await two.a.cache.settled();
      }
      await two.a.uploaded();
      assert.equal((await two.a.manifest(name))?.responses.length, 1);
      const refused = (answer: Answer, title: string): void => {
        assert.ok([401, 403, 404].includes(answer.status), `${title}: ${answer.status}`);
        assert.doesNotMatch(answer.text, /PACK/, title);
      };
      two.bucket.proxy.resetCounts();
      const path = `org/${name}`;
      refused(await two.b.post(path, fetch), "anonymous, the exact request");
      refused(
        await two.b.post(path, fetch, { Authorization: basic("wrong-token") }),
        "an unknown credential",
      );
      refused(await two.b.post(path, Buffer.concat([LS_REFS, fetch])), "ls-refs and fetch, anonymous");
      two.codeHost.revoke("bob-token");
      refused(await two.b.post(path, fetch, { Authorization: basic("bob-token") }), "a revoked credential");
      assert.equal(total(two.bucket.proxy.counts), 0, "the bucket is not even asked");
      two.codeHost.resetCalls();
      const allowed = await two.b.post(path, fetch, ALICE);
      assert.equal(allowed.headers["x-svc-cache"], "hit");
      assert.match(allowed.text, /PACK/);
      assert.equal(fetches(), 0);
      two.codeHost.revoke("alice-token");
      two.codeHost.addUser("alice", "new-token");
      refused(await two.b.post(path, fetch, { Authorization: basic("wrong-token") }), "still another");
      two.codeHost.addUser("alice", "alice-token");
      two.codeHost.addUser("bob", "bob-token");
    });

    it("a purge at A takes the response from B, which has not read it yet", async () => {
      await cachedByA();
      await two.a.purge(name);
      await two.a.uploaded();
      assert.deepEqual((await two.b.manifest(name))?.responses, []);
      await clone(two.b, `${name}-b`);
      assert.equal(fetches() > 0, true);
    });

    for (const [title, fault] of [
      ["slow", { delayMs: 60_000 }],
      ["asking to slow down", { status: 503, code: "SlowDown" }],
      ["failing", { status: 500, code: "InternalError" }],
      ["refusing connections", { refuse: true }],
      ["cutting transfers", { cutAfterBytes: 10 }],
      ["sending wrong bytes", { corruptAt: 20 }],
      ["full", { status: 507, code: "XMinioStorageFull" }],
      ["read-only", { status: 403, code: "AccessDenied" }],
      ["refusing the credentials", { status: 403, code: "ExpiredToken" }],
      ["without the bucket", { status: 404, code: "NoSuchBucket" }],
    ] as const) {
      it(`clones succeed while the store is ${title}, cold and warm`, async () => {
        const path = await cachedByA();
        const c = await two.another({ timeoutMs: 500 });
        try {
          c.list("org", name);
          two.bucket.proxy.inject(
            title === "read-only" ? ["put", "create", "part", "complete", "delete"] : "all",
            fault,
          );
          for (let at = 0; at < 3; at++) {
            await clone(c, `${name}-c${at}`);
            assert.equal(await contentOf(c.folder(`${name}-c${at}`)), await contentOf(path));
            await c.cache.settled();
          }
          await c.purge(name);
          await clone(c, `${name}-c3`);
        } finally {
          two.bucket.proxy.heal();
          await c.stop();
        }
      });
    }
  });
}
