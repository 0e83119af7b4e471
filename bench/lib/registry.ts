import { SEED_CODE } from "./measured-code.ts";
import type { Report } from "./report.ts";

/** A benchmark that `npm run bench` knows. */
export interface Benchmark {
  load(): Promise<{ run(rounds: number): Promise<Report> }>;
  /** Subject, for the list of `--help` and `bench/README.md`. */
  readonly measures: string;
  /** Time of a recorded run on two cores. */
  readonly took: string;
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
const FLEET = [...SERVING, "apps/svc/src/coordination", "apps/svc/src/storage"];
const AGENT = ["apps/agent/src"];

export const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  "git-store-index-pack": {
    measures: "indexing a received pack, against git index-pack",
    took: "5 rounds: 1.5 min",
    load: () => import("../micro/git-store-index-pack.ts"),
    code: ["packages/git-store/src/index-pack", "packages/git-store/src/pack", "packages/git-store/src/sha1"],
    svc: true,
  },
  "git-store-serve": {
    measures: "responses from stored packs, against git upload-pack",
    took: "5 rounds: 2.5 min",
    load: () => import("../micro/git-store-serve.ts"),
    code: [
      "packages/git-store/src/reachability",
      "packages/git-store/src/serve",
      "packages/git-store/src/pack",
    ],
    svc: true,
  },
  growth: {
    measures: "cost against the number of objects and of fetches",
    took: "1 round: 2.5 min",
    load: () => import("../micro/growth.ts"),
    code: ["packages/git-store/src", "packages/git-mirror/src"],
  },
  "ssh-signatures": {
    measures: "requests to the SSH agent over a Unix socket",
    took: "1 round: 4 s",
    load: () => import("../micro/ssh-signatures.ts"),
    code: ["packages/ssh-protocol/src"],
  },
  fill: {
    measures: "a cold clone and filling the mirror: CPU, memory, wall",
    took: "1 round: 5 min",
    load: () => import("../e2e/fill.ts"),
    code: SERVING,
    svc: true,
  },
  disk: {
    measures: "disk space of the cache, against the repository upstream",
    took: "1 round: 3 min",
    load: () => import("../e2e/disk.ts"),
    code: SERVING,
    svc: true,
  },
  clone: {
    measures: "raw and whole clones, cold and warm, against git and nginx",
    took: "2 rounds: 6 min",
    load: () => import("../e2e/clone.ts"),
    code: SERVING,
    svc: true,
  },
  seed: {
    measures: "clones by a seed, against git clone",
    took: "3 rounds: 4 min",
    load: () => import("../e2e/seed.ts"),
    code: [...SERVING, ...SEED_CODE, "apps/svc/src/seed-client"],
    svc: true,
  },
  kinds: {
    measures: "incremental, shallow and partial fetches, against git",
    took: "3 rounds: 3 min",
    load: () => import("../e2e/kinds.ts"),
    code: SERVING,
    svc: true,
  },
  "many-wants": {
    measures: "fetches of 10,000 and 50,000 blobs, against git",
    took: "2 rounds: 2 min",
    load: () => import("../e2e/many-wants.ts"),
    code: SERVING,
    svc: true,
  },
  "object-mirror": {
    measures: "mirrors in a bucket: restore and upload",
    took: "90 s",
    load: () => import("../e2e/object-mirror.ts"),
    code: [
      "apps/svc/src/cache/object-tier/mirror",
      "apps/svc/src/cache/object-tier/slices",
      "packages/git-mirror/src",
    ],
  },
  accel: {
    measures: "stored responses over TLS, sent by nginx",
    took: "3 rounds: 2 min",
    load: () => import("../e2e/accel.ts"),
    code: SERVING,
  },
  object: {
    measures: "a bucket behind the cache, against the local disk",
    took: "1 round: 3 min",
    load: () => import("../e2e/object.ts"),
    code: [...SERVING, "apps/svc/src/cache/object-tier", "packages/object-store/src"],
  },
  instances: {
    measures: "1, 2 and 4 instances behind nginx, and two ways to balance them",
    took: "2 rounds: 8 min",
    load: () => import("../e2e/instances.ts"),
    code: FLEET,
  },
  "scale-costs": {
    measures: "costs of each kind of request, for the model of a fleet",
    took: "1 round: 4 min",
    load: () => import("../e2e/scale-costs.ts"),
    code: FLEET,
  },
  scale: {
    measures: "real runs of 1, 2 and 4 instances, against the model of a fleet",
    took: "1 round: 6 min",
    load: () => import("../e2e/scale.ts"),
    code: [...FLEET, "bench/simulate/model"],
  },
  overload: {
    measures: "49 large clones together, and small fetches during them",
    took: "2 min",
    load: () => import("../e2e/overload.ts"),
    code: SERVING,
    svc: true,
  },
  concurrent: {
    measures: "20, 8 and 200 clones together, and 500 slow readers",
    took: "1 round: 2 to 5 min",
    load: () => import("../e2e/concurrent.ts"),
    code: SERVING,
    svc: true,
  },
  "many-refs": {
    measures: "40 clones of a repository with 60,000 branches",
    took: "1 round: 4 min",
    load: () => import("../e2e/many-refs.ts"),
    code: SERVING,
    svc: true,
  },
  "api-proxy": {
    measures: "the API proxy, against nginx's proxy_pass",
    took: "1 round: 1 min",
    load: () => import("../e2e/api-proxy.ts"),
    code: ["apps/svc/src/api-proxy", "apps/svc/src/http"],
  },
  requests: {
    measures: "fixed cost of a request on a kept connection",
    took: "3 rounds: 20 s",
    load: () => import("../e2e/requests.ts"),
    code: SERVING,
    svc: true,
  },
  "svc-start": {
    measures: "start-up, first hit and idle memory",
    took: "3 rounds: 2 min",
    load: () => import("../e2e/svc-start.ts"),
    code: ["apps/svc/src"],
    svc: true,
  },
  "release-start": {
    measures: "start-up of the installed programs, and the first hit",
    took: "3 rounds: 1 min",
    load: () => import("../e2e/release-start.ts"),
    code: ["apps/agent/src", "apps/svc/src", "tools/build"],
  },
  "svc-tokens": {
    measures: "looking up and listing 10,000 tokens",
    took: "1 round: 3 min",
    load: () => import("../e2e/svc-tokens.ts"),
    code: ["apps/svc/src/tokens", "apps/svc/src/storage"],
  },
  "agent-start": {
    measures: "start-up of the command line of agent",
    took: "1 round: 3 min",
    load: () => import("../e2e/agent-start.ts"),
    code: AGENT,
  },
  "agent-sync": {
    measures: "cycles, idle cost and delay of agent",
    took: "1 round: 2 min",
    load: () => import("../e2e/agent-sync.ts"),
    code: AGENT,
  },
  "agent-web": {
    measures: "the web port of agent",
    took: "1 round: 20 s",
    load: () => import("../e2e/agent-web.ts"),
    code: AGENT,
  },
  "agent-mount": {
    measures: "the filesystem mount of agent",
    took: "1 round: 1 min",
    load: () => import("../e2e/agent-mount.ts"),
    code: AGENT,
  },
  "agent-volumes": {
    measures: "container volumes of agent",
    took: "1 round: 1.5 min",
    load: () => import("../e2e/agent-volumes.ts"),
    code: AGENT,
  },
  "agent-ssh": {
    measures: "managed forwards and the SSH agent",
    took: "1 round: 30 s",
    load: () => import("../e2e/agent-ssh.ts"),
    code: [...AGENT, "packages/ssh-protocol/src"],
  },
  "agent-ssh-idle": {
    measures: "idle forwards of agent",
    took: "1 round: 11 min",
    load: () => import("../e2e/agent-ssh-idle.ts"),
    code: [...AGENT, "packages/ssh-protocol/src"],
  },
};
