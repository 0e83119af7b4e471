import { startVersityGateway } from "@devplat/testkit";
import { REMOVAL_FAULTS, describeRemovals } from "./svc-fleet-removal-cases.ts";

// A bucket is left alone for half a minute after each fault. Both servers have all faults in svc-fleet-removal.soak.ts.
const faults = REMOVAL_FAULTS.filter(([title]) => /hangs|cut off/.test(title));
describeRemovals("versitygw", startVersityGateway, faults);
