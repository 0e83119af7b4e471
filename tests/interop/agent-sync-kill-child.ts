// Syncs for ever under the HOME of argv[2], each time with another value, until it is killed. Prints a line per cycle.
import { silentLogger, systemClock } from "@devplat/base";
import { openEmbeddedStore, userRoot } from "@devplat/secret-store";
import { findPlaces } from "../../apps/agent/src/agent-files/places.ts";
import { Backups } from "../../apps/agent/src/sync/target/backups.ts";
import { SyncEngine } from "../../apps/agent/src/sync/engine.ts";
import { InPlaceJournal } from "../../apps/agent/src/sync/target/in-place.ts";
import { MountedFiles } from "../../apps/agent/src/sync/mounted/mounted-files.ts";
import { WriterLock } from "../../apps/agent/src/sync/lock.ts";
import { Renderer } from "../../apps/agent/src/sync/content/rule-content.ts";
import { ruleSchema } from "../../apps/agent/src/config/sections/rule.ts";
import { StateFile } from "../../apps/agent/src/sync/state.ts";
import { TargetPolicy } from "../../apps/agent/src/sync/target/target-policy.ts";
import { KILL_RULES } from "./agent-sync-kill.ts";
import { RETRY_ALL } from "../../apps/agent/src/sync/retry-scope.ts";

const [home = "", first = "0", cycles = "Infinity"] = process.argv.slice(2);
const places = findPlaces({ HOME: home });
await WriterLock.acquire(places.state);
const root = userRoot({ mount: "kv", prefix: "users/", username: "tester" });
const store = await openEmbeddedStore({ folder: places.data, root });
const state = await StateFile.open(places.state);
const renderer = new Renderer({ environment: {}, username: "tester", hash: (text) => state.hmac(text) });
const paused = { read: () => Promise.resolve(new Set<string>()) };
const logger = silentLogger;
const engine = new SyncEngine(
  {
    store,
    state,
    renderer,
    mounted: new MountedFiles({ store, renderer, paused, home, logger }),
    targets: new TargetPolicy(places, ["~"], []),
    journal: new InPlaceJournal(places.state),
    backups: new Backups(places.state),
    paused,
    clock: systemClock,
    logger,
    home,
  },
  KILL_RULES.map((rule) => ruleSchema.parse(rule)),
  { mountpoint: undefined, remedy: "", layout: "json" },
);
const signal = new AbortController().signal;
for (let i = 0; i < Number(cycles); i++) {
  await store.write("k", new Map([["token", `value-${Number(first) + i}`]]));
  const { failed } = await engine.cycle(signal, { retry: RETRY_ALL });
  process.stdout.write(
    failed.length === 0 ? `${Number(first) + i}\n` : `failed ${JSON.stringify(state.document.rules)}\n`,
  );
}
process.exit(0);
