import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { SecretStoreError, type SecretStore } from "@devplat/secret-store";
import { startVault, startVaultProxy, tempFolder, until } from "@devplat/testkit";
import { HandClock } from "../../sync/clock.test-kit.ts";
import { embedded, folderStand, observed, vaultStore } from "./secret-folder.test-kit.ts";

interface Backend {
  readonly store: SecretStore;
  stop(): Promise<void>;
}

const value = (text: string) => new Map([["value", text]]);
const paths = (snapshot: { readonly secrets: ReadonlyMap<string, unknown> }): string[] => [
  ...snapshot.secrets.keys(),
];
const never = (): AbortSignal => new AbortController().signal;

/** Tests that hold for every store. */
function secretFolderSuite(name: string, start: () => Promise<Backend>, reportsChanges: boolean): void {
  describe(`SecretFolder: ${name}`, () => {
    let backend: Backend;
    before(async () => {
      backend = await start();
    });
    after(async () => {
      await backend.store.close();
      await backend.stop();
    });

    it("finds every secret below its roots with its version, and nothing else", async () => {
      const { store } = backend;
      for (const path of ["find/a", "find/b/c", "find/b/d/e", "findx", "one", "other"]) {
        await store.write(path, value(path));
      }
      await store.write("find/b/c", value("second"));
      await using stand = folderStand(store);
      const folder = stand.folder(["find/", "one", "missing", "missing/"]);
      const found = await folder.look(never());
      assert.deepEqual(paths(found), ["find/a", "find/b/c", "find/b/d/e", "one"]);
      assert.equal(found.secrets.get("find/b/c")?.version, 2);
      assert.deepEqual([...found.faults], []);
      assert.equal(found.isTruncated, false);
      assert.deepEqual((await stand.secrets.read("find/b/c", never())).fields, value("second"));
    });

    it("reports a new version, a new secret and a removed one while it follows", async () => {
      const { store } = backend;
      await store.write("follow/a", value("1"));
      await using stand = folderStand(store, { ttlMs: reportsChanges ? 60_000 : 1 });
      const folder = stand.folder(["follow/"], reportsChanges ? 60_000 : 20);
      const following = folder.follow(stand.signal);
      await until(() => paths(folder.snapshot).join() === "follow/a");
      if (reportsChanges) await until(() => stand.watch.state === "connected");
      let changes = 0;
      folder.onChange(() => changes++, stand.signal);
      await store.write("follow/a", value("2"));
      await until(() => folder.snapshot.secrets.get("follow/a")?.version === 2);
      await store.write("follow/deep/er/b", value("1"));
      await until(() => paths(folder.snapshot).join() === "follow/a,follow/deep/er/b");
      await store.delete("follow/a");
      await until(() => paths(folder.snapshot).join() === "follow/deep/er/b");
      assert.ok(changes >= 3);
      await stand[Symbol.asyncDispose]();
      await following;
    });

    it("tells a secret that was removed and made again from the one before", async () => {
      const { store } = backend;
      await store.write("again/a", value("1"));
      await using stand = folderStand(store, { ttlMs: 0 });
      const folder = stand.folder(["again/"]);
      const first = (await folder.look(never())).secrets.get("again/a");
      await store.delete("again/a");
      await store.write("again/a", value("1"));
      const second = (await folder.look(never())).secrets.get("again/a");
      assert.equal(first?.version, second?.version);
      assert.notEqual(first?.createdAt, second?.createdAt);
    });

    it("drops secrets of a root that is taken away, and looks for those of a new one", async () => {
      const { store } = backend;
      await store.write("roots/a/x", value("1"));
      await store.write("roots/b/y", value("1"));
      await using stand = folderStand(store);
      const folder = stand.folder(["roots/a/"]);
      const following = folder.follow(stand.signal);
      await until(() => paths(folder.snapshot).join() === "roots/a/x");
      folder.setRoots(["roots/b/"]);
      assert.deepEqual(paths(folder.snapshot), []);
      await until(() => paths(folder.snapshot).join() === "roots/b/y");
      await stand[Symbol.asyncDispose]();
      await following;
    });
  });
}

secretFolderSuite(
  "embedded store",
  async () => {
    const folder = await tempFolder("secret-folder");
    return { store: await embedded(folder.path), stop: () => folder.remove() };
  },
  true,
);
secretFolderSuite(
  "Vault without events",
  async () => {
    const vault = await startVault();
    return { store: vaultStore(vault.address, () => vault.rootToken), stop: () => vault.stop() };
  },
  false,
);
secretFolderSuite(
  "Vault with events (a stub of the protocol before a real Vault)",
  async () => {
    const vault = await startVault();
    const proxy = await startVaultProxy(vault.address, { events: true });
    return {
      store: vaultStore(proxy.url, () => vault.rootToken),
      stop: async () => {
        proxy.stop();
        await vault.stop();
      },
    };
  },
  true,
);

describe("SecretFolder with a store that fails", () => {
  let store: SecretStore;
  let remove: () => Promise<void>;
  before(async () => {
    const folder = await tempFolder("secret-folder");
    remove = () => folder.remove();
    store = await embedded(folder.path);
    for (const path of ["f/a", "f/b/c", "f/d"]) await store.write(path, value("hunter2"));
  });
  after(async () => {
    await store.close();
    await remove();
  });

  const failing = (code: "denied" | "unavailable" | "unauthenticated", pattern: RegExp) => (call: string) => {
    if (pattern.test(call)) throw new SecretStoreError(code, `refused ${call}`);
  };

  it("a path that the store denies hides no other path, and is not listed", async () => {
    const requests = observed(store);
    requests.before = failing("denied", /^version f\/a$|^list f\/b\/$/);
    await using stand = folderStand(requests.store, { events: false });
    const found = await stand.folder(["f/"]).look(never());
    assert.deepEqual(paths(found), ["f/d"]);
    assert.deepEqual([...found.faults.keys()].toSorted(), ["f/a", "f/b/"]);
  });

  it("a secret that is denied later is dropped", async () => {
    const requests = observed(store);
    await using stand = folderStand(requests.store, { events: false, ttlMs: 0 });
    const folder = stand.folder(["f/"]);
    assert.deepEqual(paths(await folder.look(never())), ["f/a", "f/b/c", "f/d"]);
    requests.before = failing("denied", /^version f\/a$/);
    assert.deepEqual(paths(await folder.look(never())), ["f/b/c", "f/d"]);
  });

  it("a store that is down or signed out leaves the last snapshot, with the reason", async () => {
    for (const code of ["unavailable", "unauthenticated"] as const) {
      const requests = observed(store);
      await using stand = folderStand(requests.store, { events: false, ttlMs: 0 });
      const folder = stand.folder(["f/"]);
      await folder.look(never());
      requests.before = failing(code, /./);
      const found = await folder.look(never());
      assert.deepEqual(paths(found), ["f/a", "f/b/c", "f/d"]);
      assert.equal(found.faults.get("f/")?.code, code);
      requests.before = () => undefined;
      assert.deepEqual([...(await folder.look(never())).faults], []);
    }
  });

  it("a caller that gives up ends its look, and the last snapshot stays", async () => {
    const requests = observed(store);
    await using stand = folderStand(requests.store, { events: false, ttlMs: 0 });
    const folder = stand.folder(["f/"]);
    const earlier = await folder.look(never());
    const ended = Promise.withResolvers<void>();
    requests.before = (_call, signal) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener("abort", () => {
          ended.resolve();
          reject(new SecretStoreError("aborted", "ended"));
        });
      });
    const giveUp = new AbortController();
    const looking = folder.look(giveUp.signal);
    giveUp.abort(new Error("given up"));
    await assert.rejects(looking, /given up/);
    await ended.promise;
    assert.equal(folder.snapshot, earlier);
  });
});

describe("CachedSecrets", () => {
  let store: SecretStore;
  let remove: () => Promise<void>;
  before(async () => {
    const folder = await tempFolder("cached-secrets");
    remove = () => folder.remove();
    store = await embedded(folder.path);
    for (let index = 0; index < 40; index++) await store.write(`many/${index}`, value("1"));
  });
  after(async () => {
    await store.close();
    await remove();
  });

  it("sends one request for concurrent callers, and none until the end of its time", async () => {
    const clock = new HandClock();
    const requests = observed(store);
    await using stand = folderStand(requests.store, { events: false, ttlMs: 8000, clock });
    const folder = stand.folder(["many/"]);
    await Promise.all([folder.look(never()), folder.look(never()), folder.look(never())]);
    assert.equal(requests.calls.length, 41);
    clock.advance(7999);
    await folder.look(never());
    assert.equal(requests.calls.length, 41);
    clock.advance(1);
    await folder.look(never());
    assert.equal(requests.calls.length, 82);
  });

  it("sends a limited number of concurrent requests", async () => {
    const requests = observed(store);
    requests.before = () => new Promise((resolve) => setImmediate(resolve));
    await using stand = folderStand(requests.store, { events: false, parallel: 3 });
    await stand.folder(["many/"]).look(never());
    assert.equal(requests.running.most, 3);
  });

  it("a caller that gives up does not end the request of another", async () => {
    const requests = observed(store);
    const { promise: go, resolve } = Promise.withResolvers<void>();
    requests.before = () => go;
    await using stand = folderStand(requests.store, { events: false });
    const giveUp = new AbortController();
    const first = stand.secrets.read("many/1", giveUp.signal);
    const second = stand.secrets.read("many/1", never());
    giveUp.abort(new Error("given up"));
    await assert.rejects(first, /given up/);
    resolve();
    assert.equal((await second).version, 1);
    assert.deepEqual(requests.calls, ["read many/1"]);
  });

  it("a response from before a change is not kept", async () => {
    const requests = observed(store);
    await using stand = folderStand(requests.store, { events: false, valuesTtlMs: 60_000 });
    const { promise: go, resolve } = Promise.withResolvers<void>();
    requests.before = () => go;
    const old = stand.secrets.version("many/2", never());
    await until(() => requests.calls.length === 1);
    stand.watch.announce({ path: "many/2", kind: "written" });
    const recent = stand.secrets.version("many/2", never());
    resolve();
    await Promise.all([old, recent]);
    assert.equal(requests.calls.length, 2);
    await stand.secrets.version("many/2", never());
    assert.equal(requests.calls.length, 2);
  });

  it("keeps values only where it is told to, and not longer", async () => {
    const clock = new HandClock();
    const requests = observed(store);
    await using without = folderStand(requests.store, { events: false, clock });
    await without.secrets.read("many/3", never());
    await without.secrets.read("many/3", never());
    assert.equal(requests.calls.length, 2);
    await using stand = folderStand(requests.store, { events: false, clock, valuesTtlMs: 1000 });
    const document = await stand.secrets.read("many/3", never());
    assert.equal(await stand.secrets.read("many/3", never()), document);
    clock.advance(1000);
    assert.notEqual(await stand.secrets.read("many/3", never()), document);
    assert.equal(requests.calls.length, 4);
  });

  it("keeps refusals of one path, and no fault of the store", async () => {
    const requests = observed(store);
    await using stand = folderStand(requests.store, { events: false });
    for (const [code, expected] of [
      ["denied", 1],
      ["not_found", 1],
      ["unavailable", 2],
      ["unauthenticated", 2],
    ] as const) {
      requests.calls.length = 0;
      requests.before = () => {
        throw new SecretStoreError(code, "refused");
      };
      for (let time = 0; time < 2; time++) {
        await assert.rejects(stand.secrets.version(`refused/${code}`, never()), { code });
      }
      assert.equal(requests.calls.length, expected, code);
    }
  });

  it("a change of a secret drops the listings above it, and keeps all other ones", async () => {
    const requests = observed(store);
    await using stand = folderStand(requests.store, { events: false });
    await store.write("deep/er/a", value("1"));
    const look = async (): Promise<void> => {
      for (const folder of ["", "deep/", "deep/er/", "many/"]) await stand.secrets.list(folder, never());
    };
    await look();
    requests.calls.length = 0;
    stand.watch.announce({ path: "deep/er/b", kind: "written" });
    await look();
    assert.deepEqual(requests.calls, ["list ", "list deep/", "list deep/er/"]);
    stand.watch.announce({ path: "", kind: "written" });
    await look();
    assert.equal(requests.calls.length, 7);
  });
});
