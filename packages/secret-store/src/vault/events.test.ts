import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Secret } from "@devplat/base";
import {
  startForwardProxy,
  startVault,
  startVaultProxy,
  type Vault,
  type VaultProxy,
} from "@devplat/testkit";
import type { SecretChange, SecretStore } from "../contract.ts";
import { userRoot } from "../paths.ts";
import { collect, fieldsOf, assertRejectsWith } from "../suite.ts";
import { changeOf } from "./event.ts";
import { ResponsePart } from "./response.ts";
import { openVaultStore } from "./vault-store.ts";

const root = userRoot({ mount: "kv", prefix: "users/", username: "ada" });
const GAP: SecretChange = { path: "", kind: "written" };

describe("the Vault driver's event stream (a stub of the protocol before a real Vault)", () => {
  let vault: Vault;
  let proxy: VaultProxy;
  let store: SecretStore;
  let token = "";
  before(async () => {
    vault = await startVault();
    proxy = await startVaultProxy(vault.address, { events: true });
    token = vault.rootToken;
    store = openVaultStore({ address: proxy.url, root, token: () => new Secret(token) });
  });
  after(async () => {
    await store.close();
    proxy.stop();
    await vault.stop();
  });

  // The server sees the end of a stream after its reader has returned.
  beforeEach(async () => {
    while (proxy.events.open > 0) await sleep(5);
  });

  /** Opens a stream and reads its first event, the gap. */
  async function watching(stop: AbortController): Promise<AsyncIterator<SecretChange>> {
    const changes = store.watch(stop.signal)[Symbol.asyncIterator]();
    assert.deepEqual((await changes.next()).value, GAP);
    return changes;
  }

  it("reports writes and deletions below the user's root, and no others", async () => {
    const stop = new AbortController();
    const changes = await watching(stop);
    proxy.events.announce("kv-v2/data-write", "kv/data/users/adam/k");
    proxy.events.announce("kv-v2/data-write", "other/data/users/ada/k");
    proxy.events.announce("database/rotate", "kv/data/users/ada/x");
    await store.write("a/b", fieldsOf({ v: "1" }));
    await store.delete("a/b");
    const seen = [(await changes.next()).value, (await changes.next()).value];
    assert.deepEqual(seen, [
      { path: "a/b", kind: "written" },
      { path: "a/b", kind: "deleted" },
    ]);
    stop.abort();
    assert.equal((await changes.next()).done, true);
  });

  it("uses a forward proxy by CONNECT [agent 4.3]", async () => {
    const routes = { "vault.example:80": Number(new URL(proxy.url).port) };
    const forward = await startForwardProxy({ routes, credentials: "ada:planted" });
    const HTTP_PROXY = `http://ada:planted@127.0.0.1:${forward.port}`;
    const address = "http://vault.example";
    const environment = { HTTP_PROXY };
    const behind = openVaultStore({ address, root, token: () => new Secret(token), environment });
    const stop = new AbortController();
    const changes = behind.watch(stop.signal)[Symbol.asyncIterator]();
    assert.deepEqual((await changes.next()).value, GAP);
    assert.equal(forward.seen.at(-1), "CONNECT vault.example:80");
    stop.abort();
    assert.equal((await changes.next()).done, true);
    await behind.close();
    while (proxy.events.open > 0) await sleep(5);
    await forward.stop();
  });

  it("is open before `opened` is called, and ends when the signal fires", async () => {
    const stop = new AbortController();
    let opened = 0;
    const changes = store.watch(stop.signal, () => (opened += 1))[Symbol.asyncIterator]();
    await changes.next();
    assert.deepEqual([opened, proxy.events.open], [1, 1]);
    const next = changes.next();
    stop.abort();
    assert.equal((await next).done, true);
    while (proxy.events.open > 0) await sleep(5);
  });

  it("a broken stream is `unavailable`, and can be opened again, with a gap", async () => {
    const stop = new AbortController();
    const changes = await watching(stop);
    proxy.events.drop();
    await assertRejectsWith("unavailable", changes.next());
    await watching(stop);
    stop.abort();
  });

  it("a message that is not an event is `invalid_response`, without its text", async () => {
    const stop = new AbortController();
    const changes = await watching(stop);
    proxy.events.send("planted-text");
    await assert.rejects(changes.next(), (error: Error) => {
      assert.doesNotMatch(error.message, /planted/);
      return true;
    });
    stop.abort();
  });

  it("names why it is not opened: unsupported, denied, invalid token, no server", async () => {
    const watch = (): Promise<unknown> => collect(store.watch(AbortSignal.timeout(60_000)), 1);
    for (const [status, code] of [
      [404, "unsupported"],
      [405, "unsupported"],
      [403, "denied"],
      [503, "unavailable"],
    ] as const) {
      proxy.events.refuse = status;
      await assertRejectsWith(code, watch());
    }
    proxy.events.refuse = undefined;
    proxy.fault = { cut: true };
    await assertRejectsWith("unavailable", watch());
    proxy.fault = undefined;
    token = "not-a-token";
    proxy.events.refuse = 403;
    await assertRejectsWith("unauthenticated", watch());
    proxy.events.refuse = undefined;
    token = vault.rootToken;
  });

  it("the community build of Vault is `unsupported`", async () => {
    const direct = openVaultStore({ address: vault.address, root, token: () => new Secret(vault.rootToken) });
    await assertRejectsWith("unsupported", collect(direct.watch(AbortSignal.timeout(60_000)), 1));
    await direct.close();
  });
});

describe("changeOf", () => {
  const event = (type: string, path: string): ResponsePart =>
    ResponsePart.parse(
      JSON.stringify({ data: { event: { metadata: { path } }, event_type: type } }),
      "event",
    );
  const cases: [string, string, SecretChange | undefined][] = [
    ["kv-v2/data-patch", "kv/data/users/ada/x", { path: "x", kind: "written" }],
    ["kv-v2/undelete", "kv/undelete/users/ada/x", { path: "x", kind: "written" }],
    ["kv-v2/metadata-delete", "kv/metadata/users/ada/x", { path: "x", kind: "deleted" }],
    ["kv-v2/destroy", "kv/destroy/users/ada/x", { path: "x", kind: "deleted" }],
    ["kv-v2/data-write", "data/users/ada/a/b", { path: "a/b", kind: "written" }],
    ["kv-v2/data-write", "kv/data/users/ada/", undefined],
    ["kv-v2/config-write", "kv/config", undefined],
    ["kv-v2/data-write", "kv/data/users/bob/x", undefined],
  ];
  for (const [type, path, expected] of cases) {
    it(`${type} of ${path}`, () => assert.deepEqual(changeOf(event(type, path), root), expected));
  }

  it("other JSON values are not events", () => {
    for (const text of ["{}", '{"data":{}}', '{"data":{"event":{}}}', "null"]) {
      assert.equal(changeOf(ResponsePart.parse(text, "event"), root), undefined);
    }
  });
});
