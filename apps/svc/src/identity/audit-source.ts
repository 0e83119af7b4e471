import type { Actor, Identity, Principal } from "./principal.ts";
import type { Client } from "./client.ts";
import type { AuditAction, AuditActor, AuditEvent } from "../audit/audit-event.ts";

/** The caller of a management request, in the form of an audit event. */
export function managementSource(
  identity: Identity | undefined,
  client: Client,
): Pick<AuditEvent, "actor" | "remoteAddress" | "requestId"> {
  const actor: AuditActor =
    identity === undefined
      ? { kind: "anonymous" }
      : {
          kind: identity.kind === "administration" ? "administration_token" : "user",
          login: identity.login,
          credentialId: identity.sessionId,
        };
  return { actor, remoteAddress: client.address, requestId: client.requestId };
}

/** The audit event of an action that an actor carried out. */
export function actionEvent(
  actor: Actor,
  action: AuditAction,
  target: string,
  details?: AuditEvent["details"],
): AuditEvent {
  const source = managementSource(actor, actor.client);
  return { action, outcome: "allowed", target, ...source, ...(details === undefined ? {} : { details }) };
}

/** The caller of a request to the code host, in the form of an audit event. */
export function principalActor(principal: Principal | undefined): AuditActor {
  if (principal === undefined) return { kind: "anonymous" };
  return { kind: principal.kind, login: principal.login, credentialId: principal.tokenId };
}
