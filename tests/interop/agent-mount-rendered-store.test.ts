import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  run,
  startVault,
  startVaultProxy,
  tempFolder,
  until,
  type TempFolder,
  type Vault,
  type VaultProxy,
} from "@devplat/testkit";
import { isMounted, quick, untilText } from "./agent-mount-stand.ts";
import { Home, daemon, type RunningAgent } from "./agent-stand.ts";

const CACHE_TTL_MS = 2000;

/** A Vault without events, so that only the cache's end and polls bring changes. */
describe("rendered files over a Vault", { timeout: 240_000 }, () => {
  let folder: TempFolder;
  let vault: Vault;
  let proxy: VaultProxy;
  let place: Home;
  let running: RunningAgent;
  let mountpoint = "";
  const file = (): string => join(mountpoint, "app/.env");
  const allow = (...capabilities: string[]): Promise<unknown> =>
    vault.request("PUT", "sys/policies/acl/reader", {
      policy: `path "kv/*" { capabilities = ["read"] }
path "kv/data/users/ada/demo/app" { capabilities = ${JSON.stringify(capabilities)} }`,
    });
  const untilError = async (reason: string): Promise<void> => {
    let seen = "";
    await until(
      async () => {
        seen = (await quick("cat", file())).stderr;
        return seen.includes(reason);
      },
      () => `${seen}\n${running.log()}`,
    );
  };

  before(async () => {
    folder = await tempFolder("agent-mount-rendered-store");
    mountpoint = join(folder.path, ".daemon");
    vault = await startVault();
    await allow("read");
    await vault.put("users/ada/demo/app", { token: "one" });
    proxy = await startVaultProxy(vault.address);
    place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
    await place.configure(`store: {address: "${proxy.url}", username: ada}
sync: {interval: 10s}
fuse: {enabled: true, cache_ttl: ${CACHE_TTL_MS / 1000}s}
rules: [{name: app, key: demo/app, target: {mount: app/.env, format: dotenv}}]
`);
    await place.write(".daemon-token", await vault.createUserToken("ada", ["reader"]));
    running = await daemon(place, async () => await isMounted(mountpoint));
  });
  after(async () => {
    await running.stop();
    if (await isMounted(mountpoint)) await run("umount", ["--lazy", mountpoint], {});
    proxy.stop();
    await vault.stop();
    await folder.remove();
  });

  it("are there for a token that may list no folder, and follow changes", async () => {
    await untilText(file(), "token='one'\n");
    assert.equal((await quick("ls", "-A", join(mountpoint, "app"))).stdout, ".env\n");
    await vault.put("users/ada/demo/app", { token: "two" });
    await untilText(file(), "token='two'\n");
  });

  it("are denied when the store denies their secret [agent 39.8]", async () => {
    await allow("deny");
    await untilError("Permission denied");
    const state = async (): Promise<string> => await place.ok("rules", "list");
    await place.ok("sync").catch(() => undefined);
    await until(
      async () => (await state()).includes("failed"),
      () => running.log(),
    );
    await allow("read");
    await untilText(file(), "token='two'\n");
  });

  it("are readable without the store until the cache ends, then give EIO [agent 39.8]", async () => {
    await vault.put("users/ada/demo/app", { token: "three" });
    await untilText(file(), "token='three'\n");
    const begun = performance.now();
    proxy.fault = { cut: true };
    assert.equal(await readFile(file(), "utf8"), "token='three'\n");
    await untilError("Input/output error");
    const elapsed = performance.now() - begun;
    assert.ok(elapsed < CACHE_TTL_MS + 5000, `after ${elapsed} ms`);
    proxy.fault = undefined;
    await untilText(file(), "token='three'\n");
  });
});
