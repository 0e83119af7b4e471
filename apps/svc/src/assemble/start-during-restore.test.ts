import assert from "node:assert/strict";
import { it } from "node:test";
import { silentLogger } from "@devplat/base";
import { startVault, tempFolder } from "@devplat/testkit";
import { LiveConfig } from "../config/live-config.ts";
import { configSchema } from "../config/schema.ts";
import { FORM, RESTORING } from "../storage/vault/form.ts";
import { rootClient } from "../storage/vault/kv.test-kit.ts";
import { VaultKv } from "../storage/vault/kv.ts";
import { assemble } from "./index.ts";

it("a service does not listen if a restore into Vault began after its first look", async () => {
  const [vault, folder] = await Promise.all([startVault(), tempFolder("start-during-restore")]);
  const client = rootClient(vault);
  const kv = new VaultKv(client, { mount: "kv", prefix: "svc" });
  const config = configSchema.parse({
    data_dir: folder.path,
    dev: { mode: true },
    server: { listen: "127.0.0.1:0" },
    metrics: { listen: "127.0.0.1:0" },
    database: { driver: "vault", dsn: vault.address },
    vault: { token: vault.rootToken, mount: "kv", prefix: "svc" },
  });
  const live = new LiveConfig(config);
  const service = await assemble({ live, migrate: false, version: "1", logger: silentLogger });
  await kv.change(FORM, () => ({ applied: [RESTORING] }));
  await assert.rejects(service.start(), { code: "database_unavailable", message: /a restore runs/ });
  assert.deepEqual(await kv.list("instances"), []);
  await client.close();
  await Promise.all([vault.stop(), folder.remove()]);
});
