import { setImmediate } from "node:timers/promises";
import type { Clock } from "@devplat/base";
import {
  ProtocolError,
  decodeLsRefsResponse,
  encodeCommandRequest,
  encodeLsRefsRequest,
} from "@devplat/git-protocol";
import { LsRefsBodies } from "./ls-refs-body.ts";
import { withBody, type Upstream, type UpstreamResponse } from "../upstream/upstream.ts";
import { isUploadPackResult, ownCommandHeaders } from "../upstream/headers.ts";

/** Bytes of a refusal's body that are passed on. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** An `ls-refs` that this service sends with the caller's credential. */
export interface RefProbe {
  /** Concurrent probes with the same text share one request. Different credentials must give different texts. */
  readonly shareKey: string;
  /** Whether the response to a probe that was sent at that time is recent enough. One that is not sent yet always is. */
  readonly mayShare: (sentAt: number) => boolean;
  /** Called with the code host's response before its body is read. */
  readonly observe: (response: UpstreamResponse) => UpstreamResponse;
  /** Path of `git-upload-pack` at the code host. */
  readonly path: string;
  readonly authorization: string | undefined;
  /** `object-format` and `server-option` of the fetch. */
  readonly capabilities: readonly string[];
  readonly prefixes: readonly string[];
  /** Whether the response must name the branch of HEAD. */
  readonly symrefs: boolean;
  readonly idleMs: number;
}

/**
 * The code host's response to a probe.
 * - `authorized`: status 200, the right content type, a body that parses to its flush-pkt without `ERR`; `body` is all
 *   of it, or undefined if it is too long to keep. `sentAt` is when the probe was sent.
 * - `refused`: any other response. Its body is in memory, so that all callers can read it.
 */
export type RefsResponse =
  | { readonly kind: "authorized"; readonly body: Buffer | undefined; readonly sentAt: number }
  | { readonly kind: "refused"; readonly response: UpstreamResponse };

interface RunningProbe {
  /** Undefined: it is not sent yet. */
  sentAt: number | undefined;
  readonly response: Promise<RefsResponse>;
}

/** Sends ref probes for fetches. Concurrent probes with one key share one request. */
export class RefProbes {
  readonly #upstream: Upstream;
  readonly #userAgent: string;
  readonly #clock: Clock;
  readonly #bodies = new LsRefsBodies();
  readonly #running = new Map<string, RunningProbe>();

  constructor(options: { readonly upstream: Upstream; readonly userAgent: string; readonly clock: Clock }) {
    this.#upstream = options.upstream;
    this.#userAgent = options.userAgent;
    this.#clock = options.clock;
  }

  /** @throws GitError if no response came */
  async ask(probe: RefProbe): Promise<RefsResponse> {
    const key = JSON.stringify([probe.shareKey, probe.capabilities, probe.prefixes, probe.symrefs]);
    const running = this.#running.get(key);
    if (running !== undefined && (running.sentAt === undefined || probe.mayShare(running.sentAt))) {
      return await running.response;
    }
    const sending = setImmediate();
    const started: RunningProbe = {
      sentAt: undefined,
      // The probe is sent one turn of the event loop later, so that requests that continue in this turn share it.
      response: sending.then(async () => {
        const sentAt = (started.sentAt = this.#clock.monotonic());
        return await this.#send(probe, sentAt);
      }),
    };
    this.#running.set(key, started);
    try {
      return await started.response;
    } finally {
      if (this.#running.get(key) === started) this.#running.delete(key);
    }
  }

  async #send(probe: RefProbe, sentAt: number): Promise<RefsResponse> {
    const request = encodeLsRefsRequest(
      { symrefs: probe.symrefs, peel: true, unborn: false, refPrefixes: probe.prefixes, unknown: [] },
      [`agent=${this.#userAgent}`, ...probe.capabilities],
    );
    const sent = await this.#upstream.send({
      kind: "probe",
      method: "POST",
      path: probe.path,
      headers: ownCommandHeaders(this.#userAgent, probe.authorization),
      body: encodeCommandRequest(request),
      idleMs: probe.idleMs,
    });
    const response = probe.observe(sent);
    if (!isUploadPackResult(response)) {
      return { kind: "refused", response: withBody(response, await response.read(MAX_REFUSAL_BYTES)) };
    }
    const body = this.#bodies.begin(
      `${probe.path} ${JSON.stringify([probe.capabilities, probe.prefixes, probe.symrefs])}`,
    );
    try {
      for await (const chunk of response.chunks) body.push(chunk);
      const { bytes } = body;
      if (body.isWhole && areRefs(bytes)) return { kind: "authorized", body: bytes, sentAt };
      const refusal = bytes?.subarray(0, MAX_REFUSAL_BYTES) ?? Buffer.alloc(0);
      return { kind: "refused", response: withBody(response, refusal) };
    } finally {
      body.leave();
    }
  }
}

/** Whether the lines are refs. Of a body that was too long to keep, only the framing was checked. */
export function areRefs(body: Buffer | undefined): boolean {
  try {
    if (body !== undefined) decodeLsRefsResponse(body);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}
