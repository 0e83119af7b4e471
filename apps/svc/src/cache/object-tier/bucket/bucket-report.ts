import type { CircuitState } from "@devplat/object-store";
import type { ManifestRefusals } from "../manifest/manifest-refusals.ts";
import type { ProbedStore } from "./probed-store.ts";

export interface BucketReportParts {
  readonly probed: Pick<ProbedStore, "state">;
  readonly circuit: { readonly state: CircuitState };
  readonly refusals: ManifestRefusals;
}

/** State of the bucket for people. */
export interface BucketHealth {
  readonly state: "good" | "warn" | "bad" | "idle";
  /** One line without secrets, for administrators. */
  readonly detail: string;
  /** Lines for everybody who can ask whether the service is ready. They name neither objects nor repositories. */
  readonly notes: readonly string[];
}

/** Reports the state of the bucket. Sends no request. */
export class BucketReport {
  readonly #parts: BucketReportParts;

  constructor(parts: BucketReportParts) {
    this.#parts = parts;
  }

  /** Whether requests can use the bucket now. */
  get isUsable(): boolean {
    const { probed, circuit } = this.#parts;
    return probed.state.kind === "usable" && circuit.state === "closed";
  }

  look(): BucketHealth {
    const { probed, circuit, refusals } = this.#parts;
    const { state } = probed;
    if (state.kind === "probing")
      return { state: "idle", detail: "is being probed", notes: ["bucket: not probed yet"] };
    if (state.kind === "unusable") {
      const notes = ["bucket: not usable, only the local cache is used"];
      return { state: "bad", detail: `not used: ${state.reason}`, notes };
    }
    if (circuit.state !== "closed") {
      const notes = ["bucket: failed several times, only the local cache is used"];
      return { state: "warn", detail: "failed several times, and is tried again within 30 seconds", notes };
    }
    const refused = [...refusals.counts()];
    if (refused.length === 0) return { state: "good", detail: "answers", notes: [] };
    const otherKeys = refusals.otherKeys();
    const counts = refused.map(([reason, count]) => `${count} ${REFUSED_MANIFESTS[reason]}`).join(", ");
    const keys =
      otherKeys.length === 0
        ? ""
        : ` (key ${otherKeys.join(", ")}): set the same cache.object_key on all instances, or cache.object_key_previous to this key`;
    const detail = `manifests that are not used: ${counts}${keys}`;
    return { state: "warn", detail, notes: [`bucket: ${detail}`] };
  }
}

/** Each reason to refuse a manifest, for people. */
export const REFUSED_MANIFESTS = {
  other_key: "written with another key",
  newer_format: "of a newer version",
  forged: "forged",
  malformed: "malformed",
  old_epoch: "from before a purge",
  old_generation: "older than known",
} as const;
