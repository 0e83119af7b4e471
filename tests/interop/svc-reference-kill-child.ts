/** Stores a response, refers to its pack, and uses it, until it is killed: `FOLDER`. Prints each step. */
import { isReadRight, openStore, put, ID, KEY } from "./svc-reference-store.ts";

const store = openStore(process.argv[2] ?? "");
for (let round = 0; ; round++) {
  if (round % 3 === 0) await put(store);
  await store.refer(ID, KEY, "sha1");
  process.stdout.write("referred\n");
  await isReadRight(store);
  await store.settled();
  process.stdout.write("framed\n");
  if (round % 7 === 6) await store.remove(ID, KEY);
}
