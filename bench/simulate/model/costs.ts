import type { ByKind } from "./kinds.ts";
import type { Line } from "./line.ts";

/** Cost of the other programs of a request. They are on other machines, except on the test stand. */
export interface OtherCosts {
  /** CPU seconds of the balancer for each request, and for each byte. */
  readonly balancer: Line;
  /** CPU seconds of the client. */
  readonly client: Line;
  /** CPU seconds of the code host for one read of refs. */
  readonly hostRead: number;
  /** CPU seconds of the code host for a fetch. */
  readonly hostFetch: Line;
  /** Seconds of a request in which no program computes: disk, wake-ups, process starts. */
  readonly idle: Readonly<Record<"info" | "lsRefs" | "fetch", number>>;
}

/** Measured costs of this repository. CPU in seconds of a core, sizes in bytes. */
export interface Costs {
  /** CPU of an instance for `info/refs`, and for `ls-refs`. */
  readonly info: number;
  readonly lsRefs: number;
  /** A stored response, by its bytes. */
  readonly repeat: ByKind<Line>;
  /** The second use, when the framed form is written. */
  readonly second: ByKind<Line>;
  /** A response that is made from the mirror, by its bytes. */
  readonly built: ByKind<Line>;
  /** Fetch of a push into the mirror. */
  readonly pushFill: number;
  /** First clone from the code host and the fill of the mirror, by the bytes of the repository. */
  readonly cold: Line;
  /** Mirror from the bucket to the disk. */
  readonly hydrate: Line;
  /** Upload to the bucket. */
  readonly upload: Line;
  /** Bytes of a response as a share of those of a full clone; `behind`: bytes. */
  readonly size: Readonly<Record<"shallow" | "blobless", number>> & { readonly behindBytes: number };
  /** Requests to the bucket. */
  readonly bucket: {
    readonly mirrorUpload: number;
    readonly pushUpload: number;
    readonly pushReads: number;
    /** GETs before a response is made, which may be in the bucket. */
    readonly builtReads: number;
    readonly responseUpload: number;
    readonly hydration: number;
    /** Conditional GETs of the manifest of a repository in use, in a second, at each instance that uses it. */
    readonly manifestReadsPerSecond: number;
    /** Bytes of a part of an upload, and of a piece of a download; larger objects need more requests. */
    readonly partBytes: number;
    readonly pieceBytes: number;
  };
  /** Transactions of Postgres. */
  readonly database: {
    readonly tokenRead: number;
    /** Transactions of one fetch from the code host, with its record for the other instances. */
    readonly ledFetch: number;
    readonly backgroundPerSecond: number;
  };
  readonly memory: {
    readonly idle: number;
    /** Above idle, while a mirror is filled. */
    readonly fill: number;
    /** Above idle, for each concurrent response. */
    readonly response: number;
  };
  readonly disk: {
    /** Bytes of a mirror, and of a framed response, for each byte upstream. */
    readonly mirror: number;
    readonly framed: number;
  };
  readonly others: OtherCosts;
}
