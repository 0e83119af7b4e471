import type { Identity } from "../principal.ts";
import type { Clock } from "@devplat/base";
import type { AuditTrail } from "../../audit/audit-event.ts";
import { SvcError } from "../../errors.ts";
import type { OneTimeRecord, Role, Store } from "../../storage/store.ts";
import type { Client } from "../client.ts";
import { digest, randomText, readUserCode, userCode } from "./random.ts";
import type { Sessions, StartedSession } from "./sessions.ts";

/** Milliseconds that a code is valid (RFC 8628 section 3.2): enough to find the page and to sign in there first. */
const LIFETIME_MS = 15 * 60_000;
/** Seconds between two polls of a device, and their increase when it polls too early (section 3.5). */
const INTERVAL_SECONDS = 5;
const SLOW_DOWN_SECONDS = 5;
/** Milliseconds that a device may poll early: timers and networks jitter. */
const EARLY_MS = 500;
/** Path of the page where a person approves a program. */
export const DEVICE_PAGE_PATH = "/auth/device";
const DEVICE_KIND = "device_code";
const USER_KIND = "user_code";

/** An issued code, with the fields of the response (section 3.2). */
export interface DeviceCode {
  readonly deviceCode: string;
  readonly userCode: string;
  readonly expiresInSeconds: number;
  readonly intervalSeconds: number;
}

/** A request for access, for the person who decides on it. */
export interface DeviceRequest {
  readonly userCode: string;
  readonly clientId: string;
  readonly address: string;
  readonly at: number;
  /** Whether it asks for the admin role (scope `admin`); the person decides. */
  readonly wantsAdmin: boolean;
}

/** A person's decision: a refusal, or the role that the program gets. */
export type DeviceDecision = "deny" | Role;

/** Response to a poll of a device: a session, or an error of section 3.5. */
export type DevicePollResult =
  | { readonly kind: "session"; readonly session: StartedSession }
  | {
      readonly kind: "error";
      readonly error:
        | "authorization_pending"
        | "slow_down"
        | "access_denied"
        | "expired_token"
        | "invalid_grant";
    };

interface Kept {
  readonly clientId: string;
  readonly address: string;
  readonly at: number;
  readonly polledAt: number;
  readonly intervalSeconds: number;
  readonly wantsAdmin?: boolean;
  readonly decision:
    | { readonly kind: "pending" }
    | { readonly kind: "denied" }
    | { readonly kind: "approved"; readonly userId: string; readonly role: Role };
}

export interface DeviceFlowParts {
  readonly store: Pick<Store, "oneTime" | "users">;
  readonly sessions: Sessions;
  readonly audit: AuditTrail;
  readonly clock: Clock;
}

/**
 * The device authorization grant (RFC 8628): a program without a browser gets a session that a person approves, signed
 * in elsewhere. Codes are stored as digests. Of concurrent polls exactly one gets the session.
 */
export class DeviceFlow {
  readonly #parts: DeviceFlowParts;

  constructor(parts: DeviceFlowParts) {
    this.#parts = parts;
  }

  async begin(clientId: string, client: Client, wantsAdmin = false): Promise<DeviceCode> {
    const { store, clock } = this.#parts;
    const now = clock.now();
    const expiresAt = now + LIFETIME_MS;
    const deviceCode = randomText();
    const key = digest(deviceCode);
    let code = userCode();
    while (!(await store.oneTime.put({ kind: USER_KIND, key: digest(code), value: key, expiresAt }, now))) {
      code = userCode();
    }
    const kept: Kept = {
      clientId,
      address: client.address,
      at: now,
      polledAt: now,
      intervalSeconds: INTERVAL_SECONDS,
      wantsAdmin,
      decision: { kind: "pending" },
    };
    await store.oneTime.put({ kind: DEVICE_KIND, key, value: JSON.stringify(kept), expiresAt }, now);
    return {
      deviceCode,
      userCode: code,
      expiresInSeconds: LIFETIME_MS / 1000,
      intervalSeconds: INTERVAL_SECONDS,
    };
  }

  /** The waiting request of a typed code; undefined: none. */
  async find(typed: string): Promise<DeviceRequest | undefined> {
    const found = await this.#waiting(typed);
    if (found === undefined) return undefined;
    return requestOf(found);
  }

  /**
   * Records a person's decision, which uses up the code.
   *
   * @param answer `admin` counts only from an admin
   * @throws SvcError `not_found`: no request waits under this code; `forbidden`: the caller is not a person
   */
  async decide(
    typed: string,
    identity: Identity,
    answer: DeviceDecision,
    client: Client,
  ): Promise<DeviceRequest> {
    const { store, audit, clock } = this.#parts;
    // Otherwise a program with one session could approve more of them without end.
    if (identity.kind !== "session" || identity.device !== undefined) {
      throw new SvcError("forbidden", "Programs are approved by people, signed in in a browser");
    }
    const found = await this.#waiting(typed);
    if (found === undefined) throw unknownCode();
    const role = answer === "admin" ? identity.role : "user";
    const decision: Kept["decision"] =
      answer === "deny" ? { kind: "denied" } : { kind: "approved", userId: identity.userId, role };
    const now = clock.now();
    // The decision wins over a concurrent poll of the device. Of two decisions, the first wins.
    for (let entry: OneTimeRecord | undefined = found.entry; ;) {
      const kept = entry === undefined ? undefined : (JSON.parse(entry.value) as Kept);
      if (entry === undefined || kept?.decision.kind !== "pending") throw unknownCode();
      const next: Kept = { ...kept, decision };
      if (await store.oneTime.replace(DEVICE_KIND, entry.key, entry.value, JSON.stringify(next), now)) break;
      entry = await store.oneTime.get(DEVICE_KIND, entry.key, now);
    }
    await store.oneTime.take(USER_KIND, digest(found.userCode), now);
    const request = requestOf(found);
    audit.record({
      action: answer === "deny" ? "login.failed" : "login.succeeded",
      outcome: answer === "deny" ? "denied" : "allowed",
      actor: { kind: "user", login: identity.login, credentialId: identity.sessionId },
      target: request.clientId,
      remoteAddress: client.address,
      requestId: client.requestId,
      details: { method: "device", device_address: request.address, ...(answer === "deny" ? {} : { role }) },
    });
    return request;
  }

  /** Answers a poll of a device. */
  async poll(deviceCode: string, clientId: string, client: Client): Promise<DevicePollResult> {
    const { store, sessions, clock } = this.#parts;
    const key = digest(deviceCode);
    const now = clock.now();
    const entry = await store.oneTime.get(DEVICE_KIND, key, now);
    // A code that was never issued and an expired one cannot be distinguished: only digests are stored.
    if (entry === undefined) return refusal("expired_token");
    const kept = JSON.parse(entry.value) as Kept;
    if (kept.clientId !== clientId) return refusal("invalid_grant");
    if (kept.decision.kind === "pending") {
      const early = now - kept.polledAt + EARLY_MS < kept.intervalSeconds * 1000;
      const intervalSeconds = kept.intervalSeconds + (early ? SLOW_DOWN_SECONDS : 0);
      const next: Kept = { ...kept, polledAt: now, intervalSeconds };
      await store.oneTime.replace(DEVICE_KIND, key, entry.value, JSON.stringify(next), now);
      return refusal(early ? "slow_down" : "authorization_pending");
    }
    if ((await store.oneTime.take(DEVICE_KIND, key, now)) === undefined) return refusal("invalid_grant");
    if (kept.decision.kind === "denied") return refusal("access_denied");
    const user = await store.users.get(kept.decision.userId);
    if (user === undefined) return refusal("access_denied");
    const userAgent = [clientId, client.userAgent].filter((part) => part !== undefined).join(", ");
    const session = await sessions.start(user, kept.decision.role, { ...client, userAgent }, clientId);
    return { kind: "session", session };
  }

  async #waiting(typed: string): Promise<{ userCode: string; entry: OneTimeRecord; kept: Kept } | undefined> {
    const { store, clock } = this.#parts;
    const code = readUserCode(typed);
    if (code === undefined) return undefined;
    const now = clock.now();
    const pointer = await store.oneTime.get(USER_KIND, digest(code), now);
    if (pointer === undefined) return undefined;
    const entry = await store.oneTime.get(DEVICE_KIND, pointer.value, now);
    if (entry === undefined) return undefined;
    const kept = JSON.parse(entry.value) as Kept;
    return kept.decision.kind === "pending" ? { userCode: code, entry, kept } : undefined;
  }
}

function requestOf({
  userCode: code,
  kept,
}: {
  readonly userCode: string;
  readonly kept: Kept;
}): DeviceRequest {
  const { clientId, address, at, wantsAdmin = false } = kept;
  return { userCode: code, clientId, address, at, wantsAdmin };
}

function refusal(error: Extract<DevicePollResult, { kind: "error" }>["error"]): DevicePollResult {
  return { kind: "error", error };
}

function unknownCode(): SvcError {
  return new SvcError("not_found", "No device waits under this code, or its time is over");
}
