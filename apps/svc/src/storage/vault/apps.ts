import { Secret } from "@devplat/base";
import { SvcError } from "../../errors.ts";
import type { AppRecord, AppStore } from "../store.ts";
import type { VaultKv } from "./kv.ts";

/** An app with its secrets open: Vault encrypts all that it stores. */
interface AppEntry extends Omit<AppRecord, "privateKey" | "webhookSecret"> {
  readonly privateKey: string;
  readonly webhookSecret?: string | undefined;
}

interface AppsDocument {
  readonly apps: readonly AppEntry[];
}

const PATH = "apps";

/** All in one document: there are few, and only one of them is the default. */
export class VaultApps implements AppStore {
  readonly #kv: VaultKv;

  constructor(kv: VaultKv) {
    this.#kv = kv;
  }

  async list(): Promise<readonly AppRecord[]> {
    const apps = (await this.#kv.read<AppsDocument>(PATH))?.value.apps ?? [];
    const order = ({ name, id }: AppEntry): string => `${name}\n${id}`;
    return apps.toSorted((a, b) => (order(a) < order(b) ? -1 : 1)).map(recordOf);
  }

  async get(id: string): Promise<AppRecord | undefined> {
    return (await this.list()).find((each) => each.id === id);
  }

  async insert(record: AppRecord): Promise<void> {
    await this.#kv.change<AppsDocument>(PATH, (document) => {
      const apps = document?.apps ?? [];
      if (apps.some(({ appId }) => appId === record.appId)) {
        throw new SvcError("already_exists", `The app ${record.appId} is registered already`);
      }
      return { apps: [...withoutDefault(apps, record), entryOf(record)] };
    });
  }

  async update(record: AppRecord): Promise<boolean> {
    let updated = false;
    await this.#kv.change<AppsDocument>(PATH, (document) => {
      const apps = document?.apps ?? [];
      const stored = apps.find(({ id }) => id === record.id);
      updated = stored?.version === record.version - 1;
      if (stored === undefined || !updated) return undefined;
      const { appId, source, createdAt } = stored;
      const changed = { ...entryOf(record), appId, source, createdAt };
      return { apps: withoutDefault(apps, record).map((each) => (each.id === record.id ? changed : each)) };
    });
    return updated;
  }

  async delete(id: string): Promise<boolean> {
    let deleted = false;
    await this.#kv.change<AppsDocument>(PATH, (document) => {
      const apps = document?.apps ?? [];
      deleted = apps.some((each) => each.id === id);
      return deleted ? { apps: apps.filter((each) => each.id !== id) } : undefined;
    });
    return deleted;
  }
}

/** The apps, none of which is the default any more, if the record is it. */
function withoutDefault(apps: readonly AppEntry[], record: AppRecord): readonly AppEntry[] {
  if (!record.isDefault) return apps;
  return apps.map((each) =>
    each.isDefault && each.id !== record.id
      ? { ...each, isDefault: false, version: each.version + 1, updatedAt: record.updatedAt }
      : each,
  );
}

function entryOf(record: AppRecord): AppEntry {
  return {
    ...record,
    privateKey: record.privateKey.reveal(),
    webhookSecret: record.webhookSecret?.reveal(),
  };
}

function recordOf(entry: AppEntry): AppRecord {
  const { ownerLogin, clientId, webhookSecret } = entry;
  return {
    ...entry,
    ownerLogin,
    clientId,
    privateKey: new Secret(entry.privateKey),
    webhookSecret: webhookSecret === undefined ? undefined : new Secret(webhookSecret),
  };
}
