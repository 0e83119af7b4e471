import assert from "node:assert/strict";
import { open, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, repositories, until } from "@devplat/testkit";
import { command, contentOf, startStand, type Stand } from "./svc-git-stand.ts";
import { beginFetch, finishFetch } from "./svc-slow-fetch.ts";

const MEGABYTE = 2 ** 20;
/** One that a thread sends, and one that the event loop's own thread sends. */
const PACKS_BYTES = [24 * MEGABYTE, 12 * MEGABYTE];
/** Less than this is not sent when the file turns out changed: its checked end, and a packet. */
const HELD_BYTES = 256 * 1024;
const OWN_ERROR = "svc: stored data of this repository cannot be read; try again\n";

for (const packBytes of PACKS_BYTES) {
  describe(`a stored response of ${packBytes / MEGABYTE} MB`, { timeout: 120_000 }, () => {
    let stand: Stand;
    let source = "";
    let fetch: Buffer;
    let whole: Buffer;
    let file = "";

    /** Changes one bit in place, as another program would. */
    const flip = async (position: number): Promise<void> => {
      const handle = await open(file, "r+");
      const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, position);
      await handle.write(Buffer.from([buffer[0]! ^ 4]), 0, 1, position);
      await handle.close();
    };

    before(async () => {
      stand = await startStand({ listed: ["large"] });
      const { path } = await stand.codeHost.addRepository("org", "large", {
        build: (dir) => repositories.bigBlobs(dir, { blobs: 3, bytes: packBytes / 3 }),
      });
      source = path;
      await stand.post("org/large", command("ls-refs", ["ref-prefix refs/heads/"]));
      const oid = await git(["-C", path, "rev-parse", "refs/heads/main"]);
      fetch = command("fetch", ["no-progress", "ofs-delta", `want ${oid}`, "done"]);
      // Its second use stores it as it is sent.
      for (let uses = 0; uses < 2; uses++) {
        await stand.post("org/large", fetch);
        await stand.cache.settled();
      }
      const responses = join(stand.storagePath, "_responses", "org", "large");
      const [name = ""] = (await readdir(responses)).filter((each) => /^[0-9a-f]{64}$/.test(each));
      file = join(responses, name);
      // It is stored as it is sent after that use.
      await until(async () => (await stat(file)).size > packBytes);
      whole = (await readFile(file)).subarray(0, (await stand.post("org/large", fetch)).body.length);
    });
    after(() => stand.stop());

    it("comes as it is stored, to many clients, and is counted and logged whole", async () => {
      const counted = await stand.metric('svc_cache_bytes_total{source="response"}');
      const answers = await Promise.all([1, 2, 3, 4].map(() => stand.post("org/large", fetch)));
      for (const { body } of answers) assert.ok(body.equals(whole));
      assert.equal(
        (await stand.metric('svc_cache_bytes_total{source="response"}')) - counted,
        4 * whole.length,
      );
      const ids = new Set(answers.map(({ headers }) => headers["x-request-id"]));
      const logged = await until(() => {
        const lines = stand.access.filter((line) => ids.has(String(line["request_id"])));
        return lines.length === ids.size && lines.map(({ bytes }) => Number(bytes));
      });
      for (const bytes of logged)
        assert.ok(bytes > whole.length && bytes < whole.length + 2000, String(bytes));
    });

    it("reaches stock git, and a client that leaves is logged with what it took", async () => {
      const cloned = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/large`, "clone"]);
      assert.equal(cloned.code, 0, cloned.stderr);
      assert.equal(await contentOf(stand.folder("clone")), await contentOf(source));
      const response = await beginFetch(stand, "org/large", fetch);
      await new Promise((resolve) => setTimeout(resolve, 200));
      response.destroy();
      const id = response.headers["x-request-id"];
      const line = await until(() => stand.access.find((each) => each["request_id"] === id));
      const bytes = Number(line["bytes"]);
      assert.ok(bytes > 2 * HELD_BYTES && bytes < whole.length, String(bytes));
    });

    it("that another program changes while it is sent does not arrive as a whole one", async () => {
      const response = await beginFetch(stand, "org/large", fetch);
      // The sockets hold a part of it, and the rest waits in the kernel's hands.
      await new Promise((resolve) => setTimeout(resolve, 200));
      await flip(whole.length - MEGABYTE);
      const body = await finishFetch(response);
      assert.ok(body.length > whole.length - HELD_BYTES, `${body.length} of ${whole.length}`);
      const end = body.subarray(body.lastIndexOf(3) + 1).toString();
      assert.equal(end.replace(/0000$/, ""), OWN_ERROR);
      await stand.cache.settled();
      // The next one is compared slice by slice, and finds the damage; the one after it comes from the code host.
      await stand.post("org/large", fetch);
      await stand.cache.settled();
      const again = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/large`, "again"]);
      assert.equal(again.code, 0, again.stderr);
      assert.equal(await contentOf(stand.folder("again")), await contentOf(source));
    });
  });
}
