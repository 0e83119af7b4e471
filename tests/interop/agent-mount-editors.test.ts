import { after, before, describe, it } from "node:test";
import { startVault, type Vault } from "@devplat/testkit";
import { mountStand, VaultStandStore, type MountStand } from "./agent-mount-stand.ts";
import { assertEditing, prepareEditing } from "./agent-mount-tools/editing-stand.ts";
import { EDITOR_CASES } from "./agent-mount-tools/editor-cases.ts";
import { SAVING_CASES } from "./agent-mount-tools/saving-cases.ts";
import { titleOf } from "./agent-mount-tools/table.ts";

const TIMEOUT_MS = 480_000;

const CASES = [...SAVING_CASES, ...EDITOR_CASES];
const folderOf = (index: number): string => `edit${index}`;

describe("programs that write to the mount", { timeout: TIMEOUT_MS, concurrency: 4 }, () => {
  let vault: Vault;
  let store: VaultStandStore;
  let stand: MountStand;
  before(async () => {
    vault = await startVault();
    store = new VaultStandStore(vault);
    stand = await mountStand("agent-mount-editors", "read_write: true, cache_ttl: 1s", "", store);
    for (const index of CASES.keys()) await prepareEditing(stand, folderOf(index));
  });
  after(async () => {
    await stand.remove();
    await vault.stop();
  });

  for (const [index, given] of CASES.entries())
    it(`${titleOf(given.row)} [agent 38.23]`, () => assertEditing(stand, store, folderOf(index), given));
});
