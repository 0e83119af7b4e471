import assert from "node:assert/strict";
import { it } from "node:test";
import { Secret } from "@devplat/base";
import { filledDatabase, KEY } from "../../../backup/backup.test-kit.ts";
import { auditRecord } from "../../contract/records.ts";
import type { Replaced } from "../../database-content.ts";
import { SecretBox } from "../../secret-box.ts";
import { tableRows } from "../../sql/content.ts";
import { MIGRATION_NAMES } from "../../sql/migrations.ts";
import { vaultAudit } from "../audit.ts";
import { useVaultClient } from "../kv.test-kit.ts";
import { VaultKv } from "../kv.ts";
import { vaultSessions } from "../sessions.ts";
import { replaceVaultContent } from "./replace-content.ts";

const LATER = { id: "019b0000-0000-7000-8000-00000000000a", at: 1_800_000_000_000 };

/** Fails like a killed restore, when it has removed the audit that is not in the backup. */
class FailingKv extends VaultKv {
  isFailing = false;

  override async remove(path: string): Promise<void> {
    await super.remove(path);
    if (this.isFailing && path.endsWith(LATER.id)) throw new Error("the restore ends here");
  }
}

const client = useVaultClient();

it("an administration token that was revoked stays revoked, also after a crash", async () => {
  const source = await filledDatabase();
  const kv = new FailingKv(client(), { mount: "kv", prefix: "svc" });
  const sessions = vaultSessions(kv);
  const restore = async (): Promise<Replaced> =>
    replaceVaultContent(
      kv,
      {
        tables: tableRows(source, MIGRATION_NAMES),
        epochs: new Map(),
        raiseEpochs: false,
        replace: true,
        now: 1000,
      },
      new SecretBox(new Secret(KEY)),
    );
  assert.equal((await restore()).validTokens, 3);
  const [token] = await sessions.list({ kind: "administration" });
  assert.ok(token);

  // A request that was refused, or that did not end, revokes nothing.
  const revoked = { action: "admin_token.revoked", target: token.id } as const;
  await vaultAudit(kv).append([auditRecord({ ...revoked, outcome: "denied" }), auditRecord(revoked)]);
  assert.equal((await restore()).revocations, 0);
  assert.equal((await sessions.list({ kind: "administration" })).length, 1);

  await sessions.delete(token.id);
  await vaultAudit(kv).append([auditRecord({ ...revoked, ...LATER })]);
  kv.isFailing = true;
  await assert.rejects(restore(), /the restore ends here/);
  kv.isFailing = false;
  const { revocations, validTokens } = await restore();
  assert.deepEqual({ revocations, validTokens }, { revocations: 1, validTokens: 2 });
  assert.deepEqual(await sessions.list({ kind: "administration" }), []);
  assert.equal((await sessions.list({ kind: "session" })).length, 1);
  await source.destroy();
});
