import type { InstanceRecord, InstanceStore, ReportedInstance } from "../../coordination-store.ts";
import { byHostName } from "../../list-order.ts";
import { appliedMigrations, refuseUnfinishedRestore } from "../form.ts";
import type { Stored, VaultKv } from "../kv.ts";

interface InstanceDocument extends InstanceRecord {
  /** Time of the first report, by the clock of Vault. */
  readonly startedAt: number;
}

interface FiguresDocument {
  readonly figures: string;
}

const FOLDER = "instances";
const FIGURES_FOLDER = "instance-figures";

export function vaultInstances(kv: VaultKv): InstanceStore {
  const put = async (record: InstanceRecord): Promise<void> => {
    const now = await kv.now();
    await kv.change<InstanceDocument>(pathOf(record.id), (present) => ({
      ...record,
      startedAt: present?.startedAt ?? now,
    }));
  };
  /** A restore writes its mark first, and lists the instances then. So at least one of both finds the other. */
  const refuseRestore = async (): Promise<void> => refuseUnfinishedRestore(await appliedMigrations(kv));
  const remove = async (id: string): Promise<void> => {
    await kv.remove(figuresPath(id));
    await kv.remove(pathOf(id));
  };
  const reported = async (): Promise<readonly Stored<InstanceDocument>[]> =>
    kv.readAll<InstanceDocument>((await kv.list(FOLDER)).map((id) => pathOf(id)));
  return {
    async register(record) {
      await put(record);
      try {
        await refuseRestore();
        return true;
      } catch (error) {
        await remove(record.id);
        throw error;
      }
    },

    // It stays on the list in any case, because this instance runs.
    async report(record) {
      await put(record);
      await refuseRestore();
    },

    async putFigures(id, figures) {
      if ((await kv.read<InstanceDocument>(pathOf(id))) === undefined) return;
      await kv.change<FiguresDocument>(figuresPath(id), () => ({ figures }));
    },

    async list() {
      const now = await kv.now();
      const found = await Promise.all(
        (await reported()).map(async ({ value, writtenAt }): Promise<ReportedInstance> => {
          const { startedAt, ...record } = value;
          const figures = await kv.read<FiguresDocument>(figuresPath(record.id));
          return {
            ...record,
            uptimeMs: Math.max(0, now - startedAt),
            reportAgeMs: Math.max(0, now - writtenAt),
            figures: figures?.value.figures,
            figuresAgeMs: figures && Math.max(0, now - figures.writtenAt),
          };
        }),
      );
      return found.toSorted(byHostName);
    },

    remove,

    async removeSilent(olderThanMs) {
      const before = (await kv.now()) - olderThanMs;
      const silent = (await reported()).filter(({ writtenAt }) => writtenAt < before);
      for (const { value } of silent) await remove(value.id);
      return silent.length;
    },
  };
}

function pathOf(id: string): string {
  return `${FOLDER}/${id}`;
}

function figuresPath(id: string): string {
  return `${FIGURES_FOLDER}/${id}`;
}
