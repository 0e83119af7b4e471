import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { KEY } from "../../../backup/backup.test-kit.ts";
import type { InstanceRecord } from "../../coordination-store.ts";
import type { NewContent, TableRows } from "../../database-content.ts";
import { SecretBox } from "../../secret-box.ts";
import { vaultInstances } from "../coordination/instances.ts";
import { appliedMigrations, FORM, MIGRATIONS, RESTORING } from "../form.ts";
import { useVaultClient } from "../kv.test-kit.ts";
import { VaultKv } from "../kv.ts";
import { replaceVaultContent } from "./replace-content.ts";

const BOX = new SecretBox(new Secret(KEY));
const INSTANCE: InstanceRecord = {
  id: "i1",
  hostName: "box",
  address: undefined,
  version: "1",
  manifestKeyId: undefined,
  settingsDigests: undefined,
  ready: false,
};

function contentOf(tables: AsyncIterable<TableRows>): NewContent {
  return { tables, epochs: new Map(), raiseEpochs: false, replace: true, now: 1 };
}

/** Content of no rows. @param reached called when a restore reads it */
async function* noRows(reached: () => Promise<void> = async () => undefined): AsyncGenerator<TableRows> {
  await reached();
  yield { table: "users", rows: [] };
}

/** Another program acts before each change of the form. */
class WatchedKv extends VaultKv {
  beforeForm = async (): Promise<void> => undefined;

  override async write(path: string, value: unknown, version: number): Promise<boolean> {
    if (path === FORM) await this.beforeForm();
    return super.write(path, value, version);
  }
}

describe("an instance that starts while a restore into Vault begins", () => {
  const client = useVaultClient();
  let places = 0;

  it("after the mark: it is refused and leaves no entry, and the restore ends", async () => {
    const kv = new VaultKv(client(), { mount: "kv", prefix: `place-${++places}` });
    const instances = vaultInstances(kv);
    const tables = noRows(async () => {
      assert.deepEqual(await appliedMigrations(kv), [RESTORING]);
      await assert.rejects(instances.register(INSTANCE), {
        code: "database_unavailable",
        message: /a restore runs/,
      });
    });
    await replaceVaultContent(kv, contentOf(tables), BOX);
    assert.deepEqual(await instances.list(), []);
    await instances.register(INSTANCE);
  });

  it("before the mark: the restore is refused, and the form is as before", async () => {
    const kv = new WatchedKv(client(), { mount: "kv", prefix: `place-${++places}` });
    await replaceVaultContent(kv, contentOf(noRows()), BOX);
    const instances = vaultInstances(kv);
    kv.beforeForm = async () => {
      kv.beforeForm = async () => undefined;
      await instances.register(INSTANCE);
    };
    let isRead = false;
    const tables = noRows(async () => void (isRead = true));
    await assert.rejects(replaceVaultContent(kv, contentOf(tables), BOX), {
      code: "database_in_use",
      message: /1 instance\(s\) use the database/,
    });
    assert.equal(isRead, false);
    assert.deepEqual(await appliedMigrations(kv), MIGRATIONS);
    assert.equal((await instances.list()).length, 1);
  });
});
