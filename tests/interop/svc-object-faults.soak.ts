import { S3_SERVERS } from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import { STORE_FAULTS, describeStoreFaults } from "./svc-object-faults-cases.ts";

for (const [name, start] of S3_SERVERS) describeStoreFaults(name, start, STORE_FAULTS);
