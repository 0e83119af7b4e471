import { S3_SERVERS } from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import { STORE_FAULTS, describeStoreFaults } from "./svc-object-faults-cases.ts";

// Each fault on one of the servers: both have all of them in svc-object-faults.soak.ts.
for (const [index, [name, start]] of S3_SERVERS.entries()) {
  const faults = STORE_FAULTS.filter((_, at) => at % S3_SERVERS.length === index);
  describeStoreFaults(name, start, faults);
}
