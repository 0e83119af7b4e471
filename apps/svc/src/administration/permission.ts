import { BRAND } from "../brand.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import { SvcError } from "../errors.ts";
import { ProblemError } from "../http/request/problem.ts";
import { managementSource } from "../identity/audit-source.ts";
import type { Client } from "../identity/client.ts";
import type { Caller } from "../identity/login/authenticator.ts";
import type { Actor, Identity } from "../identity/principal.ts";

/** Who may use an operation or a page. `user`: any session. `admin`: a session with the admin role. */
export type Access = "user" | "admin";

/** @throws SvcError `forbidden` */
export function requireAdmin({ role, device }: Identity): void {
  if (role === "admin") return;
  const hint = `Sign in again with "${BRAND.command} auth login --admin", if you are an admin.`;
  throw new SvcError("forbidden", "This needs the admin role", device === undefined ? {} : { hint });
}

/** Refuses the session of a program: only a person may manage sign-ins. @throws SvcError `forbidden` */
export function requirePerson({ device }: Identity): void {
  if (device === undefined) return;
  throw new SvcError("forbidden", "The session of a program may not do this: sign in in a browser");
}

/** @throws ProblemError 401, ProblemError or SvcError 403 */
export function requireAccess(caller: Caller, access: Access): Identity {
  if (caller.kind === "identity") {
    if (access === "admin") requireAdmin(caller.identity);
    return caller.identity;
  }
  if (caller.kind === "refused") throw new SvcError("forbidden", caller.message);
  throw new ProblemError({
    code: "unauthorized",
    detail: caller.message,
    headers: { "WWW-Authenticate": `Bearer realm="${BRAND.command}"` },
  });
}

/** A request for an operation or a page. */
export interface AccessRequest {
  readonly caller: Caller;
  readonly client: Client;
  readonly path: string;
  /** Name of the operation; undefined: a page. */
  readonly operation?: string;
  /** Whether the request has an `Authorization` header. */
  readonly hasCredential: boolean;
}

/**
 * {@link requireAccess}, with an audit record of each refusal. A 401 to a request without a credential is not recorded.
 */
export function admit(request: AccessRequest, access: Access, audit: AuditTrail): Actor {
  const { caller, client, path, operation } = request;
  try {
    return { ...requireAccess(caller, access), client };
  } catch (error) {
    if (caller.kind !== "nobody" || request.hasCredential) {
      const identity = caller.kind === "identity" ? caller.identity : undefined;
      audit.record({
        action: "access.denied",
        outcome: "denied",
        target: path,
        ...managementSource(identity, client),
        ...(operation === undefined ? {} : { details: { operation } }),
      });
    }
    throw error;
  }
}
