import { S3_SERVERS } from "../../apps/svc/src/cache/object-tier/bucket.test-kit.ts";
import { REMOVAL_FAULTS, describeRemovals } from "./svc-fleet-removal-cases.ts";

for (const [name, start] of S3_SERVERS) describeRemovals(name, start, REMOVAL_FAULTS);
