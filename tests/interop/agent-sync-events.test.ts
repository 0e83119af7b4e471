import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  startVault,
  startVaultProxy,
  tempFolder,
  until,
  type TempFolder,
  type Vault,
  type VaultProxy,
} from "@devplat/testkit";
import { Home, daemon, webUrl, type RunningAgent } from "./agent-stand.ts";

let folder: TempFolder;
let vault: Vault;
let proxy: VaultProxy;
let place: Home;
let running: RunningAgent;
let url = "";

/** The stand-in of the event stream is before a real Vault; polls come every hour, so that only events can be the reason. */
before(async () => {
  folder = await tempFolder("agent-events");
  vault = await startVault();
  await vault.request("PUT", "sys/policies/acl/reader", {
    policy: 'path "kv/*" { capabilities = ["read", "list"] }',
  });
  proxy = await startVaultProxy(vault.address, { events: true });
  place = new Home(folder.path);
  await place.configure(`store: {address: "${proxy.url}", username: ada}
sync: {interval: 1h}
web: {enabled: true, listen: "127.0.0.1:0"}
rules: [{name: r, key: k, target: {path: ~/out.yaml, format: yaml}}]
`);
  await place.write(".daemon-token", await vault.createUserToken("ada", ["reader"]));
  await vault.put("users/ada/k", { token: "one" });
  running = await daemon(place, async () => (await place.read("out.yaml")) === "token: one\n");
  url = await webUrl(running);
});
after(async () => {
  await running.stop();
  proxy.stop();
  await vault.stop();
  await folder.remove();
});

const events = async (): Promise<string> => {
  const status = (await (await fetch(`${url}/api/v1/status`)).json()) as { sync: { events: string } };
  return status.sync.events;
};
const assertEventsAre = (state: string): Promise<boolean> =>
  until(
    async () => (await events()) === state,
    () => running.log(),
  );
const assertHolds = (value: string): Promise<boolean> =>
  until(
    async () => (await place.read("out.yaml")) === `token: ${value}\n`,
    () => running.log(),
  );

describe("a store with events (a stand-in of the stream before a real Vault)", () => {
  it("a change is in its file immediately, without waiting for the poll [agent 16.3]", async () => {
    await assertEventsAre("connected");
    await vault.put("users/ada/k", { token: "two" });
    proxy.events.announce("kv-v2/data-write", "kv/data/users/ada/k");
    await assertHolds("two");
  });

  it("an event of another user's secret asks the store for nothing", async () => {
    proxy.calls.length = 0;
    proxy.events.announce("kv-v2/data-write", "kv/data/users/eve/k");
    proxy.events.announce("kv-v2/data-write", "kv/data/users/ada/k");
    await until(
      async () => proxy.calls.length > 0,
      () => running.log(),
    );
    assert.deepEqual(
      proxy.calls.filter(({ path }) => path.includes("eve")),
      [],
    );
  });

  it("a broken stream is opened again, and changes during the break are noticed [agent 11.7]", async () => {
    proxy.events.refuse = 503;
    proxy.events.drop();
    await assertEventsAre("polling");
    await vault.put("users/ada/k", { token: "three" });
    proxy.events.refuse = undefined;
    await assertEventsAre("connected");
    await assertHolds("three");
  });

  it("a revoked token ends in waiting; a new one resumes the stream", async () => {
    const revoked = (await place.read(".daemon-token")).trim();
    await vault.request("POST", "auth/token/revoke", { token: revoked });
    proxy.events.drop();
    await until(
      async () => /signed out/.test(running.log()),
      () => running.log(),
    );
    await vault.put("users/ada/k", { token: "four" });
    await writeFile(join(place.path, ".daemon-token"), await vault.createUserToken("ada", ["reader"]));
    await assertHolds("four");
    await assertEventsAre("connected");
  });

  it("stopping ends the stream", async () => {
    assert.equal(await running.stop(), 0);
    await until(
      async () => proxy.events.open === 0,
      () => running.log(),
    );
  });
});
