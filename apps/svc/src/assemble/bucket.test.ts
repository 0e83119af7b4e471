import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { silentLogger, systemClock } from "@devplat/base";
import { ObjectStoreError } from "@devplat/object-store";
import {
  startS3Proxy,
  startVersityGateway,
  until,
  type S3Proxy,
  type VersityGateway,
} from "@devplat/testkit";
import { MemoryEpochs } from "../cache/object-tier/manifest/epoch-source.ts";
import { ManifestKeys } from "../cache/object-tier/manifest/manifest-keys.ts";
import { FakePointers } from "../cache/object-tier/manifest/fake-pointers.test-kit.ts";
import { REPOSITORY, adding, someResponse } from "../cache/object-tier/manifest/manifest.test-kit.ts";
import { configSchema, type Config } from "../config/schema.ts";
import type { ManifestPointerStore } from "../storage/coordination-store.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { assembleBucket, type BucketAssembly } from "./bucket.ts";

const KEY = "ab".repeat(32);
const USER = "READER";

describe("assembleBucket", () => {
  let server: VersityGateway;
  let proxy: S3Proxy;
  let open: BucketAssembly[] = [];
  before(async () => {
    server = await startVersityGateway({ users: { [USER]: "reader-secret" } });
    proxy = await startS3Proxy(server.endpoint);
  });
  after(async () => {
    await proxy.stop();
    await server.stop();
  });
  beforeEach(() => {
    proxy.heal();
    proxy.resetCounts();
  });
  afterEach(async () => {
    for (const { store } of open) await store.close();
    open = [];
  });
  const configOf = (cache: object = {}): Config =>
    configSchema.parse({
      cache: {
        enabled: true,
        object_bucket: server.bucket,
        object_endpoint: proxy.endpoint,
        object_access_key_id: server.accessKeyId,
        object_secret_access_key: server.secretAccessKey,
        object_timeout_seconds: 10,
        storage_path: "team/cache",
        object_key: KEY,
        ...cache,
      },
    });
  const assembled = (
    config: Config,
    metrics = new Metrics({ version: "0", processMetrics: false }),
    pointers?: ManifestPointerStore,
  ) => {
    const bucket = assembleBucket({
      config,
      keys: new ManifestKeys(config.cache.object_key!),
      epochs: new MemoryEpochs(),
      writer: "w1",
      pointers,
      metrics,
      clock: systemClock,
      logger: silentLogger,
    });
    open.push(bucket);
    return bucket;
  };
  const requests = (): number => Object.values(proxy.counts).reduce((sum, each) => sum + each, 0);
  const isClosed = (error: unknown): boolean =>
    error instanceof ObjectStoreError && error.code === "circuit_open";

  it("sends nothing before the probe, then reads and writes below the prefix", async () => {
    const metrics = new Metrics({ version: "0", processMetrics: false });
    const { store, manifests, names, report } = assembled(configOf(), metrics);
    await assert.rejects(manifests.current(REPOSITORY), isClosed);
    assert.equal(requests(), 0);
    assert.deepEqual(report.look().notes, ["bucket: not probed yet"]);
    assert.equal((await store.probe()).kind, "usable");
    assert.equal(report.look().state, "good");
    await manifests.update(REPOSITORY, { epoch: 0 }, adding(someResponse()));
    const { entries } = await store.list("");
    assert.deepEqual(
      entries.map(({ key }) => key),
      [names.manifest(REPOSITORY)],
    );
    assert.ok(names.manifest(REPOSITORY).startsWith("team/cache/v1/"));
    assert.match((await metrics.render()).body, /^svc_cache_object_store_usable 1$/m);
  });

  it("a request during the first probe waits for its end", async () => {
    const { store, manifests } = assembled(configOf({ storage_path: "waiting" }));
    const read = manifests.current(REPOSITORY);
    assert.equal((await store.probe()).kind, "usable");
    assert.equal(await read, undefined);
  });

  it("rows of a database stand in for conditions, also after an upgrade of the store", async () => {
    const pointers = new FakePointers();
    const start = async (client = pointers.client()) => {
      const bucket = assembled(configOf({ storage_path: "pointers" }), undefined, client);
      return { ...bucket, state: await bucket.store.probe() };
    };
    proxy.inject(["put", "complete", "delete"], { withoutConditions: server });
    const old = await start();
    assert.deepEqual([old.state.kind, old.store.hasConditions], ["usable", false]);
    await old.manifests.update(REPOSITORY, { epoch: 0 }, adding(someResponse()));
    proxy.heal();
    const late = await start();
    assert.deepEqual([late.state.kind, late.store.hasConditions], ["usable", false]);
    assert.equal((await late.manifests.current(REPOSITORY))?.generation, 1);
    await late.manifests.update(REPOSITORY, { epoch: 0 }, adding(someResponse()));
    assert.equal((await old.manifests.current(REPOSITORY, { maxAgeMs: 0 }))?.generation, 2);
    const { entries } = await late.store.list(late.names.folder(REPOSITORY));
    assert.ok(entries.every(({ key }) => key.includes("/manifests/")));
    const blind = await start(pointers.client({ readFault: () => true }));
    assert.ok(blind.state.kind === "unusable" && /no response of the database/.test(blind.state.reason));
  });

  it("names missing permissions, and uses the bucket once they are there", async () => {
    const actions = ["s3:GetObject", "s3:ListBucket"];
    await server.setPolicy({ [USER]: actions });
    const config = configOf({ object_access_key_id: USER, object_secret_access_key: "reader-secret" });
    const { store, manifests, report } = assembled(config);
    const state = await store.probe();
    assert.ok(state.kind === "unusable");
    assert.match(state.reason, /lack the permissions s3:PutObject/);
    assert.equal(report.look().state, "bad");
    assert.doesNotMatch(report.look().notes.join(), /team|probe|s3:/);
    await assert.rejects(manifests.update(REPOSITORY, { epoch: 0 }, adding(someResponse())), isClosed);
    const more = [
      "s3:PutObject",
      "s3:DeleteObject",
      "s3:AbortMultipartUpload",
      "s3:ListBucketMultipartUploads",
    ];
    await server.setPolicy({ [USER]: [...actions, ...more] });
    const ended = new AbortController();
    const running = store.run(ended.signal);
    await until(() => store.state.kind === "usable");
    ended.abort();
    await running;
  });

  it("says why for wrong credentials, a missing bucket and a store that is away", async () => {
    const cases = [
      [{ object_secret_access_key: "planted-secret" }, /refuses the credentials/],
      [{ object_bucket: "another" }, /no such bucket|denies/],
      [
        { object_endpoint: "http://127.0.0.1:9", object_timeout_seconds: 0.2 },
        /at http:\/\/127\.0\.0\.1:9: ECONNREFUSED/,
      ],
    ] as const;
    for (const [cache, reason] of cases) {
      const { store, report } = assembled(configOf(cache));
      const state = await store.probe();
      assert.ok(state.kind === "unusable");
      assert.match(state.reason, reason);
      assert.doesNotMatch(`${state.reason} ${report.look().detail}`, /planted/);
    }
  });

  it("opens the circuit when the store fails, and closes it by itself", async () => {
    const metrics = new Metrics({ version: "0", processMetrics: false });
    const { store, manifests, report } = assembled(configOf({ object_timeout_seconds: 0.3 }), metrics);
    await until(async () => (await store.probe()).kind === "usable");
    proxy.inject("all", { status: 503, code: "SlowDown" });
    for (let times = 0; times < 5; times++) await assert.rejects(manifests.current(REPOSITORY));
    proxy.resetCounts();
    await assert.rejects(manifests.current(REPOSITORY), isClosed);
    assert.equal(requests(), 0);
    assert.equal(report.look().state, "warn");
    assert.match((await metrics.render()).body, /^svc_cache_object_circuit_open 1$/m);
  });

  it("reports manifests with another key by its id", async () => {
    const writer = assembled(configOf({ storage_path: "rotated" }));
    await writer.store.probe();
    await writer.manifests.update(REPOSITORY, { epoch: 0 }, adding(someResponse()));
    const reader = assembled(configOf({ storage_path: "rotated", object_key: "cd".repeat(32) }));
    await reader.store.probe();
    assert.equal(await reader.manifests.current(REPOSITORY), undefined);
    const { state, detail, notes } = reader.report.look();
    assert.equal(state, "warn");
    assert.match(
      detail,
      /1 written with another key \(key [\da-f]{16}\): set the same cache.object_key on all/,
    );
    assert.match(notes.join(), /written with another key/);
  });

  it("refuses a prefix that a store would change", () => {
    for (const prefix of ["a//b", "a/../b"])
      assert.throws(() => assembled(configOf({ storage_path: prefix })), { code: "config_refused" });
  });
});
