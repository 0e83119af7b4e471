import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import {
  startMinio,
  startS3Proxy,
  startVersityGateway,
  type S3Server,
  type VersityGateway,
} from "@devplat/testkit";
import { fixedCredentials } from "./credentials.ts";
import type { ObjectStore } from "./object-store.ts";
import { openTestStore } from "./object-store.test-kit.ts";
import { probeStore, type Ability, type StoreAbilities } from "./store-probe.ts";

const DOCUMENT = readFileSync(join(import.meta.dirname, "../../../docs/object-stores.md"), "utf8");

/** Column of the table in the docs, by its row. */
function documented(column: 1 | 2): Record<string, string> {
  const rows = [...DOCUMENT.matchAll(/^\| ([^|]+) \| (\w+) \| (\w+) \|$/gm)];
  return Object.fromEntries(rows.map((cells) => [cells[1] ?? "", cells[column + 1] ?? ""]));
}

const resultsOf = ({ rows }: StoreAbilities): Record<string, string> =>
  Object.fromEntries(rows.map(({ ability, result }) => [ability, result]));

function rowOf({ rows }: StoreAbilities, ability: Ability) {
  const row = rows.find((each) => each.ability === ability);
  assert.ok(row !== undefined, ability);
  return row;
}

/** A store whose methods are those of another, except the given ones. */
function changed(store: ObjectStore, methods: Partial<ObjectStore>): ObjectStore {
  return new Proxy(store, {
    get(target, name) {
      const method = methods[name as keyof ObjectStore] ?? target[name as keyof ObjectStore];
      return method.bind(target);
    },
  });
}

describe("probeStore", () => {
  let versity: VersityGateway;
  let minio: S3Server;
  let store: ObjectStore;
  before(async () => {
    versity = await startVersityGateway({
      users: { READER: "reader-secret", KEEPER: "keeper-secret", SERVICE: "service-secret" },
    });
    await versity.setPolicy({
      READER: ["s3:GetObject", "s3:ListBucket"],
      KEEPER: ["s3:GetObject", "s3:PutObject", "s3:ListBucket"],
      SERVICE: [...DOCUMENT.matchAll(/"(s3:\w+)"/g)].map(([, action = ""]) => action),
    });
    minio = await startMinio();
    store = openTestStore(versity);
  });
  after(async () => {
    await store.close();
    await versity.stop();
    await minio.stop();
  });

  it("finds on both servers what the table in the docs says, and leaves nothing behind", async () => {
    for (const [server, column] of [
      [versity, 1],
      [minio, 2],
    ] as const) {
      const opened = openTestStore(server);
      const found = await probeStore(opened, { prefix: "some/prefix" });
      assert.deepEqual(resultsOf(found), documented(column), server.name);
      assert.deepEqual([found.usable, found.conditions, found.missingPermissions], [true, true, []]);
      assert.deepEqual((await opened.list("")).entries, []);
      assert.deepEqual((await opened.listUploads("")).entries, []);
      await opened.close();
    }
  });

  it("finds a store that ignores conditions", async () => {
    const ignoring = changed(store, {
      put: (key, bytes) => store.put(key, bytes),
      putLarge: (key, path) => store.putLarge(key, path, { alwaysInParts: true }),
      delete: (key) => store.delete(key),
      get: (key, { range } = {}) => store.get(key, range === undefined ? {} : { range }),
    });
    const found = await probeStore(ignoring);
    const lacking = found.rows.filter(({ result }) => result === "no").map(({ ability }) => ability);
    assert.deepEqual(lacking, [
      "get with If-None-Match",
      "put with If-None-Match",
      "put with If-Match",
      "concurrent puts with If-Match",
      "completion with If-None-Match",
      "completion with If-Match",
      "delete with If-Match",
    ]);
    assert.deepEqual([found.usable, found.conditions], [true, false]);
  });

  it("finds a store that compares before it writes, so that several writers win", async () => {
    // Each of the writers that come together compares before one of them writes.
    let comparing = 0;
    let allCompared = Promise.withResolvers<void>();
    const racing = changed(store, {
      async put(key, bytes, options = {}) {
        const { condition } = options;
        if (condition === undefined || !("ifMatch" in condition)) return await store.put(key, bytes, options);
        comparing++;
        const { promise } = allCompared;
        const { etag } = await store.head(key).catch(() => ({ etag: "" }));
        if (--comparing === 0) {
          allCompared.resolve();
          allCompared = Promise.withResolvers();
        }
        await promise;
        return etag === condition.ifMatch ? store.put(key, bytes) : store.put(key, bytes, options);
      },
    });
    const found = await probeStore(racing);
    assert.equal(rowOf(found, "put with If-Match").result, "yes");
    assert.equal(rowOf(found, "concurrent puts with If-Match").result, "no");
    assert.match(rowOf(found, "concurrent puts with If-Match").reason ?? "", /^[2-8] of 8 writers won$/);
    assert.equal(found.conditions, false);
  });

  it("finds a condition that is lost when the upload has parts", async () => {
    const losing = changed(store, {
      putLarge: (key, path) => store.putLarge(key, path, { alwaysInParts: true }),
    });
    const found = await probeStore(losing);
    assert.equal(rowOf(found, "put with If-None-Match").result, "yes");
    assert.equal(rowOf(found, "completion with If-None-Match").result, "no");
    assert.equal(found.conditions, false);
  });

  it("names missing permissions, and none with the policy of the docs", async () => {
    const as = (id: string, secret: string): ObjectStore =>
      openTestStore(versity, { credentials: fixedCredentials(id, new Secret(secret)) });
    const keeper = await probeStore(as("KEEPER", "keeper-secret"));
    assert.equal(keeper.usable, false);
    assert.equal(rowOf(keeper, "delete").result, "denied");
    assert.deepEqual(keeper.missingPermissions.toSorted(), [
      "s3:DeleteObject",
      "s3:ListBucketMultipartUploads",
    ]);
    const service = await probeStore(as("SERVICE", "service-secret"));
    assert.deepEqual([service.usable, service.conditions, service.missingPermissions], [true, true, []]);
    const reader = await probeStore(as("READER", "reader-secret"));
    assert.deepEqual(reader.missingPermissions, ["s3:PutObject"]);
    const nobody = await probeStore(as("NOBODY", "x"));
    assert.deepEqual(resultsOf(nobody), { put: "failed" });
    assert.match(nobody.rows[0]?.reason ?? "", /refuses the credentials/);
  });

  it("says that a store is not usable if it is gone, and ends with its signal", async () => {
    const proxy = await startS3Proxy(versity.endpoint);
    const short = openTestStore({ ...versity, endpoint: proxy.endpoint }, { timeoutMs: 100 });
    await proxy.goAway();
    const gone = await probeStore(short);
    assert.deepEqual([gone.usable, gone.conditions, resultsOf(gone)], [false, false, { put: "failed" }]);
    await proxy.comeBack();
    proxy.inject(["get"], { hang: true });
    const ended = new AbortController();
    const probing = probeStore(openTestStore({ ...versity, endpoint: proxy.endpoint }), {
      signal: ended.signal,
    });
    setTimeout(() => ended.abort(new Error("enough")), 100);
    await assert.rejects(probing, /enough/);
    await short.close();
    await proxy.stop();
  });
});
