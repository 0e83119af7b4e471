import type { Report } from "./report.ts";

/** A benchmark that `npm run bench` knows. */
export interface Benchmark {
  load(): Promise<{ run(rounds: number): Promise<Report> }>;
  /** Folders with the code that it measures. A result that is older than this code fails `tests/house`. */
  readonly code: readonly string[];
  /** Whether it measures the table of targets for `svc`: `npm run bench -- svc` runs these. */
  readonly svc?: true;
}

/** Way of a git request through the service. */
const SERVING = [
  "apps/svc/src/access",
  "apps/svc/src/cache",
  "apps/svc/src/git",
  "apps/svc/src/http",
  "packages/git-mirror/src",
  "packages/git-protocol/src",
  "packages/git-store/src",
];
const AGENT = ["apps/agent/src"];

export const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  "git-store-index-pack": {
    load: () => import("../micro/git-store-index-pack.ts"),
    code: ["packages/git-store/src/index-pack", "packages/git-store/src/pack"],
    svc: true,
  },
  "git-store-serve": {
    load: () => import("../micro/git-store-serve.ts"),
    code: [
      "packages/git-store/src/reachability",
      "packages/git-store/src/serve",
      "packages/git-store/src/pack",
    ],
    svc: true,
  },
  growth: {
    load: () => import("../micro/growth.ts"),
    code: ["packages/git-store/src", "packages/git-mirror/src"],
  },
  "ssh-signatures": { load: () => import("../micro/ssh-signatures.ts"), code: ["packages/ssh-protocol/src"] },
  fill: { load: () => import("../e2e/fill.ts"), code: SERVING, svc: true },
  disk: { load: () => import("../e2e/disk.ts"), code: SERVING, svc: true },
  clone: { load: () => import("../e2e/clone.ts"), code: SERVING, svc: true },
  kinds: { load: () => import("../e2e/kinds.ts"), code: SERVING, svc: true },
  "object-mirror": {
    load: () => import("../e2e/object-mirror.ts"),
    code: [
      "apps/svc/src/cache/object-tier/mirror",
      "apps/svc/src/cache/object-tier/slices",
      "packages/git-mirror/src",
    ],
  },
  accel: { load: () => import("../e2e/accel.ts"), code: SERVING },
  object: {
    load: () => import("../e2e/object.ts"),
    code: [...SERVING, "apps/svc/src/cache/object-tier", "packages/object-store/src"],
  },
  overload: { load: () => import("../e2e/overload.ts"), code: SERVING, svc: true },
  concurrent: { load: () => import("../e2e/concurrent.ts"), code: SERVING, svc: true },
  "many-refs": { load: () => import("../e2e/many-refs.ts"), code: SERVING, svc: true },
  "api-proxy": {
    load: () => import("../e2e/api-proxy.ts"),
    code: ["apps/svc/src/api-proxy", "apps/svc/src/http"],
  },
  requests: { load: () => import("../e2e/requests.ts"), code: SERVING, svc: true },
  "svc-start": { load: () => import("../e2e/svc-start.ts"), code: ["apps/svc/src"], svc: true },
  "svc-tokens": {
    load: () => import("../e2e/svc-tokens.ts"),
    code: ["apps/svc/src/tokens", "apps/svc/src/storage"],
  },
  "agent-start": { load: () => import("../e2e/agent-start.ts"), code: AGENT },
  "agent-sync": { load: () => import("../e2e/agent-sync.ts"), code: AGENT },
  "agent-web": { load: () => import("../e2e/agent-web.ts"), code: AGENT },
  "agent-mount": { load: () => import("../e2e/agent-mount.ts"), code: AGENT },
  "agent-volumes": { load: () => import("../e2e/agent-volumes.ts"), code: AGENT },
  "agent-ssh": { load: () => import("../e2e/agent-ssh.ts"), code: [...AGENT, "packages/ssh-protocol/src"] },
  "agent-ssh-idle": {
    load: () => import("../e2e/agent-ssh-idle.ts"),
    code: [...AGENT, "packages/ssh-protocol/src"],
  },
};
