import type { Clock, Secret } from "@devplat/base";
import type { Hono } from "hono";
import { readBytes } from "../http/request/request-body.ts";
import { clientOf } from "../http/request/management-client.ts";
import { ProblemError, problemOf, problemResponse } from "../http/request/problem.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { CacheMaintenance } from "../cache/policy.ts";
import type { LoginLimits } from "../identity/login/login-limits.ts";
import { digest } from "../identity/login/random.ts";
import type { Store } from "../storage/store.ts";
import { HOOK_PATH } from "../identity/apps/hook-path.ts";
import { hasSignatureForm, isSigned, pushedRepository } from "./push-event.ts";
import { ReadingPlaces } from "./reading-places.ts";

/** A push event lists up to 2048 commits, at about 1 KB each; in bytes. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** Milliseconds for a whole body: the code hosts themselves give a delivery up after 10 seconds (GitHub) or 5 (Gitea). */
const READ_TIMEOUT_MS = 10_000;
/** Milliseconds in which the same delivery counts once. */
const REPLAY_MS = 60 * 60_000;
const KIND = "webhook_delivery";

export interface PushReceiverParts {
  readonly store: Pick<Store, "apps" | "oneTime">;
  /** `host.webhook_secret` */
  readonly secret: Secret | undefined;
  readonly maintenance: CacheMaintenance;
  readonly limits: LoginLimits;
  readonly audit: AuditTrail;
  readonly clock: Clock;
}

/**
 * Receives push events of the code host, so that a cached repository is fetched immediately instead of with the next request.
 * Only a help: what callers get is still what the code host says to them. Answers 202 with what became of it.
 */
export class PushReceiver {
  readonly #parts: PushReceiverParts;
  readonly #places: ReadingPlaces;

  constructor(parts: PushReceiverParts) {
    this.#parts = parts;
    this.#places = new ReadingPlaces(parts.clock);
  }

  addTo(app: Hono): void {
    app.post(HOOK_PATH, async (context) => {
      const headers = context.req.raw.headers;
      try {
        const status = await this.#receive(context.req.raw, {
          signature: headers.get("x-hub-signature-256") ?? headers.get("x-gitea-signature") ?? undefined,
          event: headers.get("x-github-event") ?? headers.get("x-gitea-event") ?? "",
          ...clientOf(context),
        });
        return context.json({ status }, 202);
      } catch (error) {
        const problem = problemOf(error);
        if (problem === undefined) throw error;
        return problemResponse(problem);
      }
    });
    app.all(HOOK_PATH, () =>
      problemResponse({
        code: "method_not_allowed",
        detail: `${HOOK_PATH} takes POST`,
        headers: { Allow: "POST" },
      }),
    );
  }

  async #receive(
    request: Request,
    from: {
      readonly signature: string | undefined;
      readonly event: string;
      readonly address: string;
      readonly requestId: string | undefined;
    },
  ): Promise<string> {
    const { store, limits, audit, clock, maintenance } = this.#parts;
    const secrets = await this.#secrets();
    if (secrets.length === 0) {
      throw new ProblemError({
        code: "no_such_path",
        detail: "No webhook secret is configured: host.webhook_secret, or that of an app",
      });
    }
    // A body without a possible signature is not read.
    const body = hasSignatureForm(from.signature) ? await this.#read(request, from.address) : undefined;
    if (body === undefined || !isSigned(body, from.signature, secrets)) {
      limits.login(from.address);
      audit.record({
        action: "webhook.received",
        outcome: "denied",
        actor: { kind: "anonymous" },
        remoteAddress: from.address,
        requestId: from.requestId,
      });
      throw new ProblemError({
        code: "unauthorized",
        detail: "The signature is missing, or not made with a secret that is known here",
        ...(body === undefined ? { headers: { Connection: "close" } } : {}),
      });
    }
    if (from.event !== "push") return "ignored";
    const now = clock.now();
    // By the signature, not by the delivery's id: the id is not signed, so a replay could bring another.
    const key = digest(from.signature ?? "");
    const first = await store.oneTime.put({ kind: KIND, key, value: "", expiresAt: now + REPLAY_MS }, now);
    if (!first) return "seen";
    const repository = pushedRepository(parsed(body));
    if (repository === undefined) return "ignored";
    const outcome = await maintenance.warm(repository.owner, repository.name);
    audit.record({
      action: "webhook.received",
      outcome: "allowed",
      actor: { kind: "system" },
      target: `${repository.owner}/${repository.name}`,
      remoteAddress: from.address,
      requestId: from.requestId,
      details: { warming: outcome },
    });
    return outcome;
  }

  async #read(request: Request, address: string): Promise<Buffer> {
    const place = this.#places.take(address);
    try {
      return await readBytes(request, MAX_BODY_BYTES, { timeoutMs: READ_TIMEOUT_MS, signal: place.signal });
    } finally {
      place.leave();
    }
  }

  async #secrets(): Promise<Secret[]> {
    const { store, secret } = this.#parts;
    const apps = await store.apps.list();
    return [secret, ...apps.map(({ webhookSecret }) => webhookSecret)].filter((each) => each !== undefined);
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8")) as unknown;
  } catch {
    return undefined;
  }
}
