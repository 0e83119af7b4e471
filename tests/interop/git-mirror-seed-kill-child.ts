/** Makes seeds of two tips in turn until it is killed: `ROOT OID OID`. The first is an ancestor of the second. */
import { createMirrorThreads } from "@devplat/git-mirror";
import { openMirror } from "./git-mirror-open.ts";

const [root = "", ...oids] = process.argv.slice(2);
const threads = createMirrorThreads();
threads.urgency.always();
const mirror = openMirror({ root, threads });
for (;;) {
  for (const oid of oids) {
    const shown = { refs: [], head: oid, headRef: "refs/heads/main", youngSince: 0 };
    const seed = await mirror.makeSeed({ shown, always: true });
    if (seed !== undefined) process.stdout.write(`${seed.name}\n`);
  }
}
