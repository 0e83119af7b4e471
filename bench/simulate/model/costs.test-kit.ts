import type { Costs } from "./costs.ts";
import { byKind } from "./kinds.ts";
import type { Line } from "./line.ts";
import { FLEET, type Scenario } from "./scenario.ts";

const line = (fixed: number, perByte = 0): Line => ({ fixed, perByte });

/** Round costs, so that tests do not depend on a measurement. */
export const ROUND_COSTS: Costs = {
  info: 0.002,
  lsRefs: 0.002,
  repeat: byKind(() => line(0.004)),
  second: byKind(() => line(0.006)),
  built: byKind(() => line(0.02)),
  pushFill: 0.05,
  cold: line(1, 4e-8),
  hydrate: line(0.05, 5e-9),
  upload: line(0.01, 2e-9),
  size: { shallow: 0.1, blobless: 0.2, behindBytes: 1e5 },
  bucket: {
    mirrorUpload: 8,
    pushUpload: 6,
    pushReads: 2,
    builtReads: 1,
    responseUpload: 3,
    hydration: 5,
    manifestReadsPerSecond: 1 / 30,
    partBytes: 8e6,
    pieceBytes: 32e6,
  },
  database: { tokenRead: 1, ledFetch: 5, backgroundPerSecond: 2 },
  memory: { idle: 1e8, fill: 1.8e8, response: 1e6 },
  disk: { mirror: 1, framed: 1 },
  others: {
    balancer: line(0.001),
    client: line(0.001),
    hostRead: 0.01,
    hostFetch: line(0.02),
    idle: { info: 0, lsRefs: 0, fetch: 0 },
  },
};

/** A short scenario with small repositories. */
export const SMALL: Scenario = {
  ...FLEET,
  seconds: 20,
  warmUp: 10,
  repositories: { count: 20, zipf: 1, medianBytes: 1e7, sigma: 0.5, maxBytes: 1e8 },
  load: { kind: "pushed", jobsPerSecond: 5, jobsPerPush: 5, spread: 5 },
};
