import assert from "node:assert/strict";
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Readable } from "node:stream";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { SecretStore } from "../contract.ts";
import { SecretStoreError } from "../errors.ts";
import { userRoot } from "../paths.ts";
import { collect, fieldsOf, assertRejectsWith, secretStoreSuite } from "../suite.ts";
import { openEmbeddedStore } from "./embedded-store.ts";

const top = mkdtempSync(join(tmpdir(), "embedded-store-"));
after(() => rmSync(top, { recursive: true, force: true }));
let folders = 0;
function newFolder(): string {
  folders++;
  return join(top, `store${folders}`);
}

function open(folder: string, username = "ada"): Promise<SecretStore> {
  return openEmbeddedStore({ folder, root: userRoot({ mount: "kv", prefix: "users/", username }) });
}

secretStoreSuite("embedded", async () => {
  const folder = newFolder();
  return { open: (username) => open(folder, username), stop: async () => undefined, numbers: "text" };
});

describe("openEmbeddedStore [agent 11.1]", () => {
  it("creates a folder with mode 0700 and files with 0600, also the write-ahead log [agent 11.9]", async () => {
    const folder = newFolder();
    const store = await open(folder);
    await store.write("a", fieldsOf({ password: "hunter2" }));
    const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
    assert.equal(modeOf(folder), "700");
    for (const name of ["embedded.db", "embedded.db-wal", "embedded.db-shm", "embedded.key"]) {
      assert.equal(modeOf(join(folder, name)), "600", name);
    }
    await store.close();
  });

  it("stores no value and no field name in the clear [agent 11.9]", async () => {
    const folder = newFolder();
    const store = await open(folder);
    await store.write("a", fieldsOf({ passphrase: "hunter2-hunter2" }));
    const bytes = ["embedded.db", "embedded.db-wal"]
      .map((name) => readFileSync(join(folder, name), "latin1"))
      .join("");
    assert.ok(bytes.includes("kv/users/ada/a"));
    assert.ok(!bytes.includes("hunter2"));
    assert.ok(!bytes.includes("passphrase"));
    await store.close();
  });

  it("keeps the secrets after a restart", async () => {
    const folder = newFolder();
    const first = await open(folder);
    await first.write("a", fieldsOf({ v: "1" }));
    await first.close();
    const second = await open(folder);
    assert.deepEqual((await second.read("a")).fields, fieldsOf({ v: "1" }));
    await second.close();
  });

  it("several concurrent first openings share one key", async () => {
    const folder = newFolder();
    const stores = await Promise.all(Array.from({ length: 6 }, () => open(folder)));
    await stores[0]?.write("a", fieldsOf({ v: "1" }));
    for (const store of stores) {
      assert.equal((await store.read("a")).fields.get("v"), "1");
      await store.close();
    }
  });

  for (const [what, path, mode] of [
    ["folder", "", 0o750],
    ["database", "embedded.db", 0o640],
    ["key file", "embedded.key", 0o604],
  ] as const) {
    it(`refuses a ${what} that others can open, with a hint`, async () => {
      const folder = newFolder();
      await (await open(folder)).close();
      chmodSync(join(folder, path), mode);
      await assert.rejects(open(folder), (error: unknown) => {
        assert.ok(error instanceof SecretStoreError);
        assert.equal(error.code, "insecure_files");
        assert.match(error.hint ?? "", /^chmod [67]00 /);
        return true;
      });
    });
  }

  it("refuses a database that is a symbolic link", async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    renameSync(join(folder, "embedded.db"), join(folder, "elsewhere.db"));
    symlinkSync(join(folder, "elsewhere.db"), join(folder, "embedded.db"));
    await assertRejectsWith("insecure_files", open(folder));
  });

  it("a lost key is corrupt, and no new key is created [agent 11.9]", async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    rmSync(join(folder, "embedded.key"));
    await assertRejectsWith("corrupt", open(folder));
    await assertRejectsWith("corrupt", open(folder));
  });

  it("a damaged key file is corrupt, and the error does not quote it", async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    writeFileSync(join(folder, "embedded.key"), "v1:almost-a-key");
    await assert.rejects(open(folder), (error: unknown) => {
      assert.ok(error instanceof SecretStoreError);
      assert.equal(error.code, "corrupt");
      assert.ok(!`${error.message}${error.hint ?? ""}`.includes("almost"));
      return true;
    });
  });

  it("the key of another store is corrupt", async () => {
    const [one, other] = [newFolder(), newFolder()];
    for (const folder of [one, other]) await (await open(folder)).close();
    renameSync(join(other, "embedded.key"), join(one, "embedded.key"));
    await assertRejectsWith("corrupt", open(one));
  });

  it("a file that is not a database is corrupt", async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    writeFileSync(join(folder, "embedded.db"), "this is not a database, only some text\n".repeat(200));
    await assertRejectsWith("corrupt", open(folder));
  });

  it("an empty database with a key is corrupt, not a new store", async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    writeFileSync(join(folder, "embedded.db"), "");
    await assertRejectsWith("corrupt", open(folder));
  });

  it("after a crash before the schema was written, the next opening completes it", async () => {
    const folder = newFolder();
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(folder, "embedded.db"), "", { mode: 0o600 });
    writeFileSync(join(folder, "embedded.key.new"), "v1:cut off", { mode: 0o600 });
    for (let round = 1; round <= 2; round++) {
      const store = await open(folder);
      assert.deepEqual(await store.write("a", fieldsOf({ v: "1" })), { version: round });
      await store.close();
    }
  });

  it("after a crash before the key was adopted, the next opening completes it", async () => {
    const folder = newFolder();
    const store = await open(folder);
    await store.write("a", fieldsOf({ v: "1" }));
    await store.close();
    renameSync(join(folder, "embedded.key"), join(folder, "embedded.key.new"));
    const again = await open(folder);
    assert.equal((await again.read("a")).fields.get("v"), "1");
    await again.close();
  });

  it("a database of a newer release is misconfigured and does not change", async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    const database = new DatabaseSync(join(folder, "embedded.db"));
    database.exec("PRAGMA user_version = 99");
    database.close();
    await assertRejectsWith("misconfigured", open(folder));
  });

  it("a value that was moved to another path cannot be opened", async () => {
    const folder = newFolder();
    const store = await open(folder);
    await store.write("a", fieldsOf({ v: "a" }));
    await store.write("b", fieldsOf({ v: "b" }));
    const database = new DatabaseSync(join(folder, "embedded.db"));
    database.exec(
      "UPDATE version SET sealed = (SELECT sealed FROM version WHERE path LIKE '%/a') WHERE path LIKE '%/b'",
    );
    database.close();
    await assertRejectsWith("corrupt", store.read("b"));
    assert.equal((await store.read("a")).fields.get("v"), "a");
    await store.close();
  });

  it("after close every call is unavailable", async () => {
    const store = await open(newFolder());
    await store.close();
    await assertRejectsWith("unavailable", store.read("a"));
    await store.close();
  });
});

describe("EmbeddedStore.watch", () => {
  const module = fileURLToPath(new URL("./embedded-store.ts", import.meta.url));
  /** Starts another process that runs `body` with the variable `store`. */
  function elsewhere(folder: string, body: string): ChildProcessByStdio<null, Readable, null> {
    const program = `
      import { openEmbeddedStore } from ${JSON.stringify(module)};
      const root = { mount: "kv", folder: "users/ada/" };
      const store = await openEmbeddedStore({ folder: ${JSON.stringify(folder)}, root });
      ${body}`;
    const flags = ["--input-type=module", "--disable-warning=ExperimentalWarning", "--eval"];
    return spawn(process.execPath, [...flags, program], { stdio: ["ignore", "pipe", "inherit"] });
  }

  it("reports another process's write [agent 11.10]", async () => {
    const folder = newFolder();
    const store = await open(folder);
    const stop = new AbortController();
    const seen = collect(store.watch(stop.signal), 1);
    elsewhere(folder, 'await store.write("from/afar", new Map([["a", "1"]])); await store.close();');
    assert.deepEqual(await seen, [{ path: "from/afar", kind: "written" }]);
    assert.deepEqual((await store.read("from/afar")).fields, fieldsOf({ a: "1" }));
    stop.abort();
    await store.close();
  });

  it("reports a gap if more changes were made than are kept", async () => {
    const store = await open(newFolder());
    const stop = new AbortController();
    const changes = store.watch(stop.signal);
    for (let count = 0; count < 1_005; count++) await store.write("busy", fieldsOf({ count: String(count) }));
    assert.deepEqual(await collect(changes, 2), [
      { path: "", kind: "written" },
      { path: "busy", kind: "written" },
    ]);
    stop.abort();
    await store.close();
  });

  it("ends when the signal fires", async () => {
    const store = await open(newFolder());
    const stop = new AbortController();
    const seen = collect(store.watch(stop.signal), 1);
    setImmediate(() => stop.abort());
    assert.deepEqual(await seen, []);
    await store.close();
  });

  it("after a kill during a write, the store opens with complete versions only", async () => {
    const folder = newFolder();
    await (await open(folder)).close();
    const writer = elsewhere(
      folder,
      `for (let count = 1; ; count++) {
         await store.write("k", new Map([["v", "x".repeat(10_000) + count]]));
         if (count === 40) process.stdout.write("going");
       }`,
    );
    writer.stdout.once("data", () => writer.kill("SIGKILL"));
    await once(writer, "exit");
    const store = await open(folder);
    const { version } = await store.metadata("k");
    assert.ok(version >= 40);
    assert.deepEqual((await store.read("k")).fields, fieldsOf({ v: "x".repeat(10_000) + String(version) }));
    await store.close();
  });
});
