import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, readdir, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { SecretStoreError, parseFields, type SecretStore } from "@devplat/secret-store";
import { until } from "@devplat/testkit";
import { embedded, observed, type ObservedRequests } from "../../secrets/folder/secret-folder.test-kit.ts";
import type { VolumeSettings } from "./volume.ts";
import { ROOTFUL, ROOTLESS, volumesStand, type VolumesTestStand } from "./volumes.test-kit.ts";

let storeFolder: string;
let store: SecretStore;
let requests: ObservedRequests;
let stand: VolumesTestStand;

async function write(path: string, text: string): Promise<void> {
  await store.write(path, parseFields(text));
}

beforeEach(async () => {
  storeFolder = await mkdtemp(join(tmpdir(), "volumes-store-"));
  store = await embedded(storeFolder);
  requests = observed(store);
  await write("demo/a", '{"v":"1"}');
  await write("demo/b", '{"v":"1"}');
  stand = await volumesStand(requests.store);
});
afterEach(async () => {
  await stand[Symbol.asyncDispose]();
  await store.close();
  await rm(storeFolder, { recursive: true });
});

const path = (rest: string): string => join(stand.folder, "volumes/app", rest);
const read = (name: string): Promise<string> => readFile(path(name), "utf8");
const create = (secrets = "demo/"): Promise<void> => stand.volumes.create("app", { secrets }, ROOTFUL);
const mount = (id: string): Promise<string> => stand.volumes.mount("app", id, ROOTFUL);
const view = () => stand.volumes.status()[0] ?? assert.fail("there is no volume");

function unavailable(): never {
  throw new SecretStoreError("unavailable", "the store cannot be reached", { remedy: "retry" });
}

describe("volumes", () => {
  it("create is repeated with equal options, and refused with others", async () => {
    await create("demo/a,demo/b");
    await create("demo/a,demo/b");
    await assert.rejects(create("demo/a"), { code: "volume_exists" });
    assert.deepEqual(stand.volumes.list(), [{ name: "app", mountpoint: path("") }]);
  });

  it("count references by the ID of the mount", async () => {
    await create();
    for (const id of ["one", "one", "two"]) assert.equal(await mount(id), path(""));
    assert.equal(view().mounts, 2);
    await stand.volumes.unmount("app", "one");
    await stand.volumes.unmount("app", "one");
    await stand.volumes.unmount("app", "of nobody");
    assert.match(await read("demo/a.json"), /"1"/);
    await assert.rejects(stand.volumes.remove("app"), { code: "volume_in_use", hint: /docker release app/ });
    await stand.volumes.unmount("app", "two");
    assert.equal(existsSync(path("")), false);
    await stand.volumes.remove("app");
    await stand.volumes.remove("app");
    await assert.rejects(mount("three"), { code: "volume_unknown" });
  });

  it("a failed first mount leaves nothing, and says which secret is missing", async () => {
    await create("demo/a,demo/missing");
    await assert.rejects(mount("one"), { message: 'there is no secret "demo/missing"' });
    assert.deepEqual([view().mounts, existsSync(path(""))], [0, false]);
    requests.before = unavailable;
    await assert.rejects(mount("one"), { code: "secret_unreadable", message: /cannot be reached/ });
    requests.before = () => undefined;
    await write("demo/missing", "{}");
    await mount("one");
    assert.equal(view().secrets, 2);
  });

  it("mount is refused immediately without a sign-in, also while the store hangs", async () => {
    await create();
    requests.before = () => Promise.withResolvers<void>().promise;
    stand.signIn(false);
    await assert.rejects(mount("one"), { code: "not_signed_in", hint: /agent login/ });
    assert.deepEqual(requests.calls, []);
  });

  it("list and get answer while a mount waits for the store", async () => {
    await create();
    const hang = Promise.withResolvers<void>();
    requests.before = () => hang.promise;
    const mounted = mount("one");
    await until(() => requests.calls.length > 0);
    assert.equal(stand.volumes.list().length, 1);
    assert.equal(stand.volumes.get("app").name, "app");
    hang.resolve();
    await mounted;
  });

  it("a removed secret is pruned, and a new one appears", async () => {
    await create();
    await mount("one");
    await write("demo/c", '{"v":"1"}');
    await store.delete("demo/a");
    await until(async () => existsSync(path("demo/c.json")) && !existsSync(path("demo/a.json")));
    assert.deepEqual((await readdir(path("demo"))).toSorted(), ["b.json", "c.json"]);
    await until(() => stand.refreshed.includes("app"));
  });

  it("a change of one secret reads one, and an unmount forgets the values", async () => {
    await create();
    await mount("one");
    requests.calls.length = 0;
    await write("demo/a", '{"v":"2"}');
    await until(async () => (await read("demo/a.json")).includes('"2"'));
    assert.match(await read("demo/b.json"), /"1"/);
    assert.deepEqual(
      requests.calls.filter((call) => call.startsWith("read")),
      ["read demo/a"],
    );
    await stand.volumes.unmount("app", "one");
    await mount("two");
    const reads = requests.calls.filter((call) => call.startsWith("read"));
    assert.deepEqual(reads.toSorted(), ["read demo/a", "read demo/a", "read demo/b"]);
  });

  it("a failed refresh keeps the last files, says so, and is repeated", async () => {
    await create();
    await mount("one");
    requests.before = unavailable;
    await write("demo/a", '{"v":"2"}');
    await until(() => view().error?.includes("cannot be reached"));
    assert.match(await read("demo/a.json"), /"1"/);
    requests.before = () => undefined;
    await until(async () => (await read("demo/a.json")).includes('"2"'));
    await until(() => view().error === null);
  });

  it("a sign-in repeats a failed refresh", async () => {
    await create();
    await mount("one");
    stand.signIn(false);
    await write("demo/a", '{"v":"2"}');
    await until(() => view().error?.includes("not signed in"));
    assert.match(await read("demo/a.json"), /"1"/);
    stand.signIn(true);
    await until(async () => (await read("demo/a.json")).includes('"2"'));
  });

  it("a rootful engine needs docker.paths, also for a mount; a rootless one does not", async () => {
    await assert.rejects(create("private/a"), { code: "path_refused" });
    stand.settings.paths = undefined;
    await assert.rejects(create(), { code: "path_refused" });
    await stand.volumes.create("app", { secrets: "demo/" }, ROOTLESS);
    await assert.rejects(mount("one"), { code: "path_refused" });
    await stand.volumes.mount("app", "one", ROOTLESS);
  });

  it("a restart keeps mounts and files, and writes nothing without a change", async () => {
    await create();
    await mount("one");
    const version = await readlink(path("..data"));
    await stand.restart();
    await until(() => view().secrets === 2);
    assert.equal(await readlink(path("..data")), version);
    await write("demo/a", '{"v":"2"}');
    await until(async () => (await read("demo/a.json")).includes('"2"'));
    await stand.volumes.unmount("app", "one");
    assert.equal(existsSync(path("")), false);
  });

  it("mounts of an earlier start of the host do not count, and their files go", async () => {
    await create();
    await mount("one");
    await stand.restart("second");
    assert.deepEqual([view().mounts, existsSync(path(""))], [0, false]);
    await stand.volumes.remove("app");
  });

  it("a damaged list begins again, and files of mounted volumes stay", async () => {
    await create();
    await mount("one");
    await stand.volumes.stop();
    await writeFile(join(stand.folder, "volumes.json"), "{");
    await stand.restart();
    assert.deepEqual(stand.volumes.list(), []);
    assert.match(await read("demo/a.json"), /"1"/);
  });

  it("files that a container has removed come back with the next refresh", async () => {
    await create();
    await mount("one");
    await rm(path("..data"));
    stand.volumes.reconcile();
    await until(async () => (await read("demo/a.json")).includes('"1"'));
  });

  it("the state has names and options, and no value", async () => {
    await write("demo/a", '{"v":"planted"}');
    await create();
    await mount("one");
    const text = await readFile(join(stand.folder, "volumes.json"), "utf8");
    assert.match(text, /"one"/);
    assert.doesNotMatch(text, /planted/);
  });
});

describe("volumes of a store that reports no changes", () => {
  const LONG_MS = 600_000;

  const looked = (): number => requests.calls.filter((call) => call === "list demo/").length;

  async function polled(settings: Partial<VolumeSettings>): Promise<void> {
    await stand[Symbol.asyncDispose]();
    stand = await volumesStand(requests.store, { events: false, settings });
  }

  it("are polled", async () => {
    await polled({ cacheTtlMs: 50 });
    await create();
    await mount("one");
    assert.equal(view().refresh, "probing");
    await write("demo/a", '{"v":"2"}');
    await until(async () => (await read("demo/a.json")).includes('"2"'));
  });

  it("look again when a secret is known to have changed, long before the next poll", async () => {
    await polled({ cacheTtlMs: LONG_MS });
    await create();
    await mount("one");
    await until(() => looked() > 0);
    await write("demo/a", '{"v":"2"}');
    stand.announce();
    await until(async () => (await read("demo/a.json")).includes('"2"'));
  });

  it("are polled in the interval of a changed docker.cache_ttl while mounted", async () => {
    await polled({ cacheTtlMs: LONG_MS });
    await create();
    await mount("one");
    await until(() => looked() > 0);
    await write("demo/a", '{"v":"2"}');
    stand.settings.cacheTtlMs = 50;
    stand.volumes.reconcile();
    await until(async () => (await read("demo/a.json")).includes('"2"'));
    await write("demo/a", '{"v":"3"}');
    await until(async () => (await read("demo/a.json")).includes('"3"'));
  });

  it("keep the interval of their own ttl when docker.cache_ttl changes", async () => {
    await polled({ cacheTtlMs: 50 });
    await stand.volumes.create("app", { secrets: "demo/", ttl: "10m" }, ROOTFUL);
    await stand.volumes.create("polled", { secrets: "demo/" }, ROOTFUL);
    await mount("one");
    await stand.volumes.mount("polled", "two", ROOTFUL);
    stand.settings.cacheTtlMs = 60;
    stand.volumes.reconcile();
    // Both have looked once because of the reload, and the polled one again.
    const looks = looked();
    await until(() => looked() >= looks + 4);
    await write("demo/a", '{"v":"2"}');
    // The other volume shows that the new interval has passed.
    const polledFile = join(stand.folder, "volumes/polled/demo/a.json");
    await until(async () => (await readFile(polledFile, "utf8")).includes('"2"'));
    assert.match(await read("demo/a.json"), /"1"/);
  });
});
