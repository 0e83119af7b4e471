import { randomUUIDv7 } from "node:crypto";
import { resolve } from "node:path";
import { systemClock } from "@devplat/base";
import { noteLine, printJson, printLine } from "@devplat/base/terminal";
import { refuseUnusable } from "../config/refusals.ts";
import { databaseSettings } from "../storage/database-settings.ts";
import { encryptionKeys } from "../storage/encryption-key.ts";
import { openStore } from "../storage/open-store.ts";
import { readConfig, type ConfigOption } from "./settings.ts";

/** Encrypts what is stored under the current key. May run beside the service, and again after it was broken off. */
export async function rekey(option: ConfigOption & { readonly json: boolean }): Promise<void> {
  const { config } = readConfig(option);
  refuseUnusable(config);
  const keys = async (): ReturnType<typeof encryptionKeys> =>
    encryptionKeys({
      ...config.encryption,
      developmentMode: config.dev.mode,
      dataDir: resolve(config.data_dir),
    });
  const store = await openStore(databaseSettings(config), keys, false);
  try {
    const count = await store.rekey((done, total) => {
      if (!option.json && total > 0) noteLine(`${done} of ${total}`);
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
    if (option.json) printJson({ encrypted: count }, 0);
    else if (count === 0) printLine("everything is under the current key");
    else printLine(`encrypted ${count} secret(s) under the current key`);
  } finally {
    await store.close();
  }
}
