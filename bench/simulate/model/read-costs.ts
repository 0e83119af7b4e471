import { findRow, type Results } from "../../lib/find-row.ts";
import type { Row } from "../../lib/row.ts";
import type { Costs } from "./costs.ts";
import { byKind, KINDS, type Kind } from "./kinds.ts";
import { lineThrough, type Line } from "./line.ts";

/** Commits of a push: an assumption, for the size of a push from that of a fetch of 100 commits. */
const COMMITS_OF_A_PUSH = 5;
/** Commits of the recorded fetch, and concurrent clones of the recorded memory. */
const RECORDED_COMMITS = 100;
const RECORDED_CLONES = 200;
/** Bytes of a mirror in `object-mirror`, which its rows name: express and large. */
const MIRROR_BYTES = [11e6, 162e6] as const;
const UPLOAD_PART_BYTES = 8 * 2 ** 20;
const DOWNLOAD_PIECE_BYTES = 32 * 2 ** 20;
const MEGABYTE = 1e6;
/** A look-up of a token is one statement, at most once in a second for each token and instance. */
const TOKEN_READ = 1;

/** Names of the kinds in the result `kinds`, and in the notes of `git-store-serve`. */
const RECORDED: Readonly<Record<Exclude<Kind, "full">, string>> = {
  shallow: "depth 1",
  blobless: "blob:none",
  behind: "100 commits behind",
};

/** Figures of the stored results. */
class Figures {
  readonly #results: Results;

  constructor(results: Results) {
    this.#results = results;
  }

  row(result: string, pattern: RegExp): Row {
    return findRow(this.#results, result, pattern, "make the model of a fleet");
  }

  median(result: string, pattern: RegExp): number {
    return this.row(result, pattern).ours.median;
  }

  /** A row of `scale-costs`. @param what kind of request */
  cost(what: string, column: "CPU of the instance" | "time" | "response"): Row {
    return this.row("scale-costs", new RegExp(`^${what}: ${column}$`));
  }

  /** Requests of an instance in `scale-costs`, which has no row where there were none. */
  requests(what: string, kind: "PUTs to the bucket" | "GETs from the bucket"): number {
    const row = this.#results.get("scale-costs")?.rows.find((each) => each.what === `${what}: ${kind}`);
    return row?.ours.median ?? 0;
  }

  /** Bytes of a response of `scale-costs`. */
  response(what: string): number {
    return this.cost(what, "response").ours.median * MEGABYTE;
  }

  /** Bytes of a response of `git-store-serve`, by its notes. */
  bytes(repository: string, what: string): number {
    const notes = this.#results.get("git-store-serve")?.notes ?? [];
    const begin = `${repository}, ${what}: `;
    const found = notes.find((note) => note.startsWith(begin))?.slice(begin.length);
    const megabytes = /^([\d.]+) MB/.exec(found ?? "")?.[1];
    if (megabytes === undefined)
      throw new Error(`Cannot make the model of a fleet: git-store-serve has no note "${begin}…".`);
    return Number(megabytes) * MEGABYTE;
  }
}

const REPOSITORIES = ["express", "large"] as const;

/** Costs for a fleet, from the stored results. Lines go through the repositories express and large. */
export function readCosts(results: Results): Costs {
  const figures = new Figures(results);
  const [expressBytes, largeBytes] = REPOSITORIES.map((name) => figures.bytes(name, "full clone")) as [
    number,
    number,
  ];
  const fullLine = (express: number, large: number): Line =>
    lineThrough([expressBytes, express], [largeBytes, large]);
  const kindLine = (kind: Exclude<Kind, "full">, use: "first" | "repeated"): Line => {
    const [express, large] = REPOSITORIES.map((name): [number, number] => [
      figures.bytes(name, RECORDED[kind]),
      figures.median("kinds", new RegExp(`^${name}: ${RECORDED[kind]}, ${use}, server CPU`)),
    ]) as [[number, number], [number, number]];
    return lineThrough(express, large);
  };
  const stored = REPOSITORIES.map((name) =>
    figures.median("clone", new RegExp(`^${name}: warm raw fetch, framed`)),
  ) as [number, number];
  const repeat = byKind((kind) => (kind === "full" ? fullLine(...stored) : kindLine(kind, "repeated")));
  const secondUse = figures.median("disk", /^large: second use/);
  const writing = (secondUse - stored[1]) / largeBytes;
  const made = REPOSITORIES.map((name, at) => {
    const making = figures.median("git-store-serve", new RegExp(`^${name}, full clone: CPU`));
    return making + stored[at]!;
  }) as [number, number];
  const share = (kind: "shallow" | "blobless"): number =>
    (figures.bytes("express", RECORDED[kind]) / expressBytes +
      figures.bytes("large", RECORDED[kind]) / largeBytes) /
    2;
  const behind = (figures.bytes("express", RECORDED.behind) + figures.bytes("large", RECORDED.behind)) / 2;
  const idleMemory = figures.median("svc-start", /^release: idle memory, 10 s/) * MEGABYTE;
  const upload = figures.row("object-mirror", /^large .*upload of the mirror/);
  const uploadSmall = figures.row("object-mirror", /^express .*upload of the mirror/);
  const mirror = figures.row("disk", /^large: after one full clone/);
  const framed = figures.row("disk", /^large: and the full clone used three times/);
  return {
    info: figures.cost("info/refs", "CPU of the instance").ours.median,
    lsRefs: figures.cost("ls-refs", "CPU of the instance").ours.median,
    repeat,
    second: byKind((kind) => ({ ...repeat[kind], perByte: repeat[kind].perByte + writing })),
    built: byKind((kind) => (kind === "full" ? fullLine(...made) : kindLine(kind, "first"))),
    pushFill: pushFill(figures),
    cold: fullLine(
      figures.median("fill", /^express: CPU from the first byte until idle$/),
      figures.median("fill", /^large: CPU from the first byte until idle$/),
    ),
    hydrate: lineThrough(
      [MIRROR_BYTES[0], figures.median("object-mirror", /^express .*the same/)],
      [MIRROR_BYTES[1], figures.median("object-mirror", /^large .*the same/)],
    ),
    upload: lineThrough(
      [MIRROR_BYTES[0], uploadSmall.reference.median],
      [MIRROR_BYTES[1], upload.reference.median],
    ),
    size: {
      shallow: share("shallow"),
      blobless: share("blobless"),
      behindBytes: (behind / RECORDED_COMMITS) * COMMITS_OF_A_PUSH,
    },
    bucket: {
      // Without the create, the parts and the completion of the pack, which the model counts by the bytes.
      mirrorUpload: Math.max(
        1,
        figures.requests("first clone", "PUTs to the bucket") -
          1 -
          Math.ceil(expressBytes / UPLOAD_PART_BYTES),
      ),
      pushUpload: mean(KINDS.map((kind) => figures.requests(`after a push, ${kind}`, "PUTs to the bucket"))),
      pushReads: mean(KINDS.map((kind) => figures.requests(`after a push, ${kind}`, "GETs from the bucket"))),
      builtReads: mean(KINDS.map((kind) => figures.requests(`built, ${kind}`, "GETs from the bucket"))),
      responseUpload: figures.requests("second use, shallow", "PUTs to the bucket"),
      hydration: figures.requests("from the bucket, mirror", "GETs from the bucket"),
      manifestReadsPerSecond: figures.median("scale-costs", /^idle: GETs/),
      partBytes: UPLOAD_PART_BYTES,
      pieceBytes: DOWNLOAD_PIECE_BYTES,
    },
    database: {
      tokenRead: TOKEN_READ,
      ledFetch: figures.median("scale-costs", /^after a push: transactions/),
      backgroundPerSecond: figures.median("scale-costs", /^idle: transactions/),
    },
    memory: {
      idle: idleMemory,
      fill: figures.median("fill", /^large: peak memory/) * MEGABYTE - idleMemory,
      response:
        (figures.median("concurrent", /^large: 200 .*warm, peak memory/) * MEGABYTE - idleMemory) /
        RECORDED_CLONES,
    },
    disk: {
      mirror: mirror.ours.median / mirror.reference.median,
      framed: (framed.ours.median - mirror.ours.median) / framed.reference.median,
    },
    others: otherCosts(figures),
  };
}

/**
 * Costs for the test stand, whose repositories are copies of express: those of `scale-costs` alone, which sends one request
 * after another.
 */
export function readStandCosts(results: Results): Costs {
  const figures = new Figures(results);
  const costs = readCosts(results);
  const constant = (what: string): Line => ({
    fixed: figures.cost(what, "CPU of the instance").ours.median,
    perByte: 0,
  });
  const full = figures.response("stored, full");
  return {
    ...costs,
    repeat: byKind((kind) => constant(`stored, ${kind}`)),
    second: byKind((kind) => constant(`second use, ${kind}`)),
    built: byKind((kind) => constant(`built, ${kind}`)),
    // The costs of a second use and of a push contain it.
    upload: { fixed: 0, perByte: 0 },
    size: {
      shallow: figures.response("stored, shallow") / full,
      blobless: figures.response("stored, blobless") / full,
      // The requests of `scale-costs` lacked two pushes.
      behindBytes: figures.response("after a push, behind") / 2,
    },
  };
}

/** Bytes of a full clone on the test stand. */
export function standRepositoryBytes(results: Results): number {
  return new Figures(results).response("stored, full");
}

/** CPU of the first request after a push, above that of a request that is made from the mirror. */
function pushFill(figures: Figures): number {
  const cpu = (what: string): number => figures.cost(what, "CPU of the instance").ours.median;
  return mean(KINDS.map((kind) => Math.max(0, cpu(`after a push, ${kind}`) - cpu(`built, ${kind}`))));
}

function otherCosts(figures: Figures): Costs["others"] {
  const cpu = (what: string): Row => figures.cost(what, "CPU of the instance");
  const other = (what: string, name: string): number =>
    cpu(what).others?.find((each) => each.name === name)?.value.median ?? Number.NaN;
  const idle = (what: string): number => {
    const time = figures.cost(what, "time");
    return Math.max(0, time.ours.median - time.reference.median);
  };
  const bytes = figures.response("stored, full");
  const line = (fixed: number, full: number): Line => ({
    fixed,
    perByte: Math.max(0, full - fixed) / bytes,
  });
  const hostFetch = mean(KINDS.map((kind) => other(`after a push, ${kind}`, "code host")));
  return {
    balancer: line(
      (other("info/refs", "balancer") + other("ls-refs", "balancer")) / 2,
      other("stored, full", "balancer"),
    ),
    client: line(
      (other("info/refs", "client") + other("ls-refs", "client")) / 2,
      other("stored, full", "client"),
    ),
    hostRead: (other("info/refs", "code host") + other("ls-refs", "code host")) / 2,
    hostFetch: line(hostFetch, other("first clone", "code host")),
    idle: { info: idle("info/refs"), lsRefs: idle("ls-refs"), fetch: idle("stored, shallow") },
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
