import { git } from "@devplat/testkit";
import { FIRSTS, FetchBench, REPEATED, type FetchKind } from "../lib/fetch-kinds.ts";
import type { Report } from "../lib/report.ts";
import { benchRepositories } from "../lib/repositories.ts";
import type { Row } from "../lib/row.ts";

/** Blobs of a lazy fetch: those that a check-out of a large commit lacks. */
const LAZY = 10_000;
/** Blobs of a batch of `git backfill` (git: builtin/backfill.c, min_batch_size). */
const BATCH = 50_000;

/** Fetches of many objects by their ids, as partial clones send them, against git. */
export async function run(rounds: number): Promise<Report> {
  const bench = await FetchBench.start("many-wants", rounds);
  try {
    const rows: Row[] = [];
    for (const repository of await benchRepositories()) {
      const benched = await bench.add(repository);
      for (const kind of await kindsOf(repository.path)) rows.push(...(await benched.measure(kind)));
    }
    return {
      name: "many-wants",
      title: "Fetches of 10,000 and 50,000 blobs through svc, compared with git http-backend",
      method: `One curl posts the \`fetch\` that a partial clone sends for blobs it lacks (filter \`blob:none\`, no haves), and discards the answer, after an \`ls-refs\` that gave the authorization and is not counted. \`git backfill\` sends ${BATCH} wants in each request. First: no client has sent this request before; each of the ${FIRSTS} requests of a round wants other blobs. Repeated: the last of them again, ${REPEATED} times. Direct: the git processes for the same requests. CPU of svc is its whole process. ${rounds} rounds in turn.`,
      rows,
    };
  } finally {
    await bench.stop();
  }
}

async function kindsOf(path: string): Promise<FetchKind[]> {
  const listed = await git(["-C", path, "cat-file", "--batch-all-objects", "--batch-check"]);
  const blobs = listed.split("\n").flatMap((line) => (line.includes(" blob ") ? [line.split(" ")[0]!] : []));
  return [
    { name: "lazy fetch of 10,000 blobs", wants: LAZY },
    { name: "git backfill, one batch of 50,000 blobs", wants: BATCH },
  ]
    .filter(({ wants }) => wants <= blobs.length)
    .map(({ name, wants }) => ({
      name,
      first: 1,
      repeated: 1,
      args: (turn) => {
        // Blobs of the whole repository, others in each turn: ids are in no order of the history.
        const from = (turn * 997) % blobs.length;
        const chosen = [...blobs, ...blobs].slice(from, from + wants);
        return [...chosen.map((oid) => `want ${oid}`), "filter blob:none"];
      },
    }));
}
