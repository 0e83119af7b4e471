import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { WEB_KEY_FILE, WebKey, readWebAccess } from "./web-key.ts";

const folder = await mkdtemp(join(tmpdir(), "web-key-"));
after(() => rm(folder, { recursive: true }));

describe("WebKey", () => {
  it("publishes a key that only the user can read, and takes it as bearer", async () => {
    const key = new WebKey(folder);
    await key.publish("http://127.0.0.1:1");
    assert.equal((await stat(join(folder, WEB_KEY_FILE))).mode & 0o777, 0o600);
    const text = (await readFile(join(folder, WEB_KEY_FILE), "utf8")).trim();
    assert.ok(key.opens(`Bearer ${text}`));
    assert.ok(key.opens(`bearer ${text}`));
    const access = await readWebAccess(folder);
    assert.equal(access.url, "http://127.0.0.1:1");
    assert.equal(access.key.reveal(), text);
    await key.withdraw();
    assert.deepEqual(await readdir(folder), []);
  });

  it("refuses every other header", () => {
    const key = new WebKey(folder);
    for (const header of [
      undefined,
      "",
      "Bearer",
      "Bearer ",
      "Bearer x",
      "Basic eDp5",
      `Bearer ${"x".repeat(500)}`,
    ]) {
      assert.equal(key.opens(header), false);
    }
  });

  it("does not take away the key of a daemon that came after", async () => {
    const first = new WebKey(folder);
    const second = new WebKey(folder);
    await first.publish("http://127.0.0.1:1");
    await second.publish("http://127.0.0.1:2");
    await first.withdraw();
    assert.equal((await readWebAccess(folder)).url, "http://127.0.0.1:2");
    await second.withdraw();
  });
});
