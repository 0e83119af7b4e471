import { silentLogger, systemClock, Secret } from "@devplat/base";
import { Leases } from "../../apps/svc/src/coordination/leases.ts";
import { sqlStore } from "../../apps/svc/src/storage/sql/sql-store.ts";
import { openPostgres } from "../../apps/svc/src/storage/postgres/open.ts";
import { postgresSpecifics } from "../../apps/svc/src/storage/postgres/specifics.ts";
import { SecretBox } from "../../apps/svc/src/storage/secret-box.ts";

/*
 * A process that holds a lease, and prints its fencing number and each moment at which it would write. Arguments: DSN,
 * milliseconds of the lease.
 */
const [dsn = "", ttlMs = ""] = process.argv.slice(2);
const secret = new Secret(dsn);
const db = await openPostgres({ dsn: secret, maxConnections: 2 });
const store = sqlStore({
  db,
  box: new SecretBox(new Secret("0f".repeat(32))),
  specifics: postgresSpecifics(secret),
});
const leases = new Leases({
  store: store.leases,
  instance: `child ${process.pid}`,
  clock: systemClock,
  logger: silentLogger,
});
const held = await leases.hold("work", Number(ttlMs));
if (held === undefined) throw new Error("Another process has the lease");
print(`fence ${held.fence}`);
while (!held.lost.aborted) {
  print(held.isHeld ? "write" : "wait");
  await systemClock.sleep(20);
}
print("lost");
await store.close();

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
