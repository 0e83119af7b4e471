import type { EpochStore } from "../../coordination-store.ts";
import { counted } from "./changes.ts";
import { nextNumber } from "./growing-number.ts";
import { nameFor, type VaultKv } from "../kv.ts";

/** Epochs of the repositories of one owner, by key. */
export interface OwnerDocument {
  readonly epochs: Readonly<Record<string, number>>;
}

const FOLDER = "epochs";

/** One document per owner, so that reading all takes few requests. */
export function vaultEpochs(kv: VaultKv): EpochStore {
  const get = async (key: string): Promise<number> =>
    (await kv.read<OwnerDocument>(epochsPath(key)))?.value.epochs[key] ?? 0;
  /** @param next undefined: the epoch stays */
  const put = async (key: string, next: (last: number) => number | undefined): Promise<number> => {
    let epoch = 0;
    await counted(kv, "epochs", async () => {
      let isChanged = false;
      await kv.change<OwnerDocument>(epochsPath(key), ({ epochs } = { epochs: {} }) => {
        const last = epochs[key] ?? 0;
        const raised = next(last);
        isChanged = raised !== undefined;
        epoch = raised ?? last;
        return raised === undefined ? undefined : { epochs: { ...epochs, [key]: raised } };
      });
      return isChanged;
    });
    return epoch;
  };
  return {
    get,

    async raise(key) {
      const now = await kv.now();
      return put(key, (last) => nextNumber(last, now));
    },

    adopt: async (key, atLeast) => put(key, (last) => (last < atLeast ? atLeast : undefined)),

    async all() {
      const names = await kv.list(FOLDER);
      const documents = await kv.readAll<OwnerDocument>(names.map((name) => `${FOLDER}/${name}`));
      return new Map(documents.flatMap(({ value }) => Object.entries(value.epochs)));
    },
  };
}

export function epochsPath(key: string): string {
  return `${FOLDER}/${nameFor(key.slice(0, key.lastIndexOf("/")))}`;
}
