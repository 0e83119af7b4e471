import { Secret } from "@devplat/base";
import { SvcError } from "../../errors.ts";
import type { AppRecord, AppStore } from "../store.ts";
import type { VaultKv } from "./kv.ts";

/** An app with its secrets as plain text, because Vault encrypts all that it stores. */
interface AppEntry extends Omit<AppRecord, "privateKey" | "webhookSecret"> {
  readonly privateKey: string;
  readonly webhookSecret?: string | undefined;
}

export interface AppsDocument {
  readonly apps: readonly AppEntry[];
}

export const PATH = "apps";

/** All apps are in one document: there are few, and only one of them is the default. */
export function vaultApps(kv: VaultKv): AppStore {
  const list = async (): Promise<readonly AppRecord[]> => {
    const apps = (await kv.read<AppsDocument>(PATH))?.value.apps ?? [];
    const order = ({ name, id }: AppEntry): string => `${name}\n${id}`;
    return apps.toSorted((a, b) => (order(a) < order(b) ? -1 : 1)).map(appOf);
  };
  return {
    list,
    get: async (id) => (await list()).find((each) => each.id === id),

    async insert(record) {
      await kv.change<AppsDocument>(PATH, ({ apps } = { apps: [] }) => {
        if (apps.some(({ appId }) => appId === record.appId)) {
          throw new SvcError("already_exists", `The app ${record.appId} is registered already`);
        }
        return { apps: [...withoutDefault(apps, record), entryOf(record)] };
      });
    },

    async update(record) {
      let updated = false;
      await kv.change<AppsDocument>(PATH, ({ apps } = { apps: [] }) => {
        const stored = apps.find(({ id }) => id === record.id);
        updated = stored?.version === record.version - 1;
        if (stored === undefined || !updated) return undefined;
        const { appId, source, createdAt } = stored;
        const changed = { ...entryOf(record), appId, source, createdAt };
        return { apps: withoutDefault(apps, record).map((each) => (each.id === record.id ? changed : each)) };
      });
      return updated;
    },

    async delete(id) {
      let deleted = false;
      await kv.change<AppsDocument>(PATH, ({ apps } = { apps: [] }) => {
        const others = apps.filter((each) => each.id !== id);
        deleted = others.length < apps.length;
        return deleted ? { apps: others } : undefined;
      });
      return deleted;
    },
  };
}

/** The apps without a default, if the record is the default. */
function withoutDefault(apps: readonly AppEntry[], record: AppRecord): readonly AppEntry[] {
  if (!record.isDefault) return apps;
  return apps.map((each) =>
    each.isDefault && each.id !== record.id
      ? { ...each, isDefault: false, version: each.version + 1, updatedAt: record.updatedAt }
      : each,
  );
}

export function entryOf(record: AppRecord): AppEntry {
  return {
    ...record,
    privateKey: record.privateKey.reveal(),
    webhookSecret: record.webhookSecret?.reveal(),
  };
}

export function appOf(entry: AppEntry): AppRecord {
  const { webhookSecret } = entry;
  return {
    ...entry,
    privateKey: new Secret(entry.privateKey),
    webhookSecret: webhookSecret === undefined ? undefined : new Secret(webhookSecret),
  };
}
