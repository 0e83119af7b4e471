import { randomUUIDv7 } from "node:crypto";
import { systemClock } from "@devplat/base";
import { flagOf, printResult } from "@devplat/cli";
import { noteLine, printLine } from "@devplat/base/terminal";
import { refuseUnusable } from "../config/refusals.ts";
import { databaseSettings, encryptionKeySource } from "../storage/database-settings.ts";
import { encryptionKeys } from "../storage/encryption-key.ts";
import { openStore } from "../storage/open-store.ts";
import { readConfig, type RunCommand } from "./command.ts";

/** Encrypts stored secrets under the current key. It may run while the service runs, and again after it was interrupted. */
export const rekey: RunCommand = async ({ flags, options }) => {
  const { config } = await readConfig(flags);
  refuseUnusable(config);
  const keys = async (): ReturnType<typeof encryptionKeys> => encryptionKeys(encryptionKeySource(config));
  const store = await openStore(databaseSettings(config), keys, false);
  try {
    const count = await store.rekey((done, total) => {
      if (!flagOf(options, "json") && total > 0) noteLine(`${done} of ${total}`);
    });
    if (count > 0) {
      await store.audit.append([
        {
          id: randomUUIDv7(),
          at: systemClock.now(),
          action: "encryption.rekeyed",
          outcome: "allowed",
          actor: { kind: "system" },
          details: { secrets: count },
        },
      ]);
    }
    printResult(options, { encrypted: count }, () =>
      printLine(
        count === 0
          ? "everything is under the current key"
          : `encrypted ${count} secret(s) under the current key`,
      ),
    );
  } finally {
    await store.close();
  }
};
