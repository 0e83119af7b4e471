import assert from "node:assert/strict";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { createLogger, ifExists, systemClock } from "@devplat/base";
import { repositoryId } from "../../apps/svc/src/access/repository-id.ts";
import { FaultLog } from "../../apps/svc/src/cache/fault-log.ts";
import { GrowingSums } from "../../apps/svc/src/cache/responses/block-sums.ts";
import { FileResponseStore } from "../../apps/svc/src/cache/responses/file-response-store.ts";
import { framedPack } from "../../apps/svc/src/cache/responses/references/reference.test-kit.ts";
import { ResponseFolders } from "../../apps/svc/src/cache/responses/response-folders.ts";
import { Slices } from "../../apps/svc/src/cache/responses/slices.ts";

export const ID = repositoryId("org", "name");
export const KEY = "c".repeat(64);
const HOST_URL = "https://code.example";

/** The same response in each process, of several slices. */
export const {
  response,
  pack,
  name: packName,
} = framedPack(Buffer.from(Array.from({ length: 1_500_000 }, (_, at) => (at * at + (at >> 9)) % 251)));

/** A store over a folder, whose packs are files of the folder. */
export function openStore(folder: string): FileResponseStore {
  return new FileResponseStore({
    folders: new ResponseFolders(folder, HOST_URL),
    packs: { openPack: async (_id, name) => ifExists(open(join(folder, `${name}.pack`), "r")) },
    hostUrl: HOST_URL,
    slices: new Slices(),
    faults: new FaultLog(createLogger({ destination: { write: () => undefined } })),
    clock: systemClock,
    packSuspected: () => undefined,
    stopping: new AbortController().signal,
  });
}

export async function put(store: FileResponseStore): Promise<void> {
  const sums = new GrowingSums();
  sums.push(response);
  const pending = await store.create(ID, KEY);
  await pending.write([response], 0);
  await pending.commit(sums.finish());
  await pending.close();
}

/** Reads the response, if the store has it. @returns whether it has */
export async function isReadRight(store: FileResponseStore): Promise<boolean> {
  const opened = await store.open(ID, KEY);
  if (opened === undefined) return false;
  assert.ok(opened !== "failed", "it is not damaged");
  const parts: Buffer[] = [];
  for (let at = 0; at < opened.size;) {
    const slice = await opened.slice(at);
    parts.push(Buffer.from(slice.bytes));
    at += slice.bytes.length;
    slice.release();
  }
  await opened.close();
  assert.ok(Buffer.concat(parts).equals(response));
  return true;
}
