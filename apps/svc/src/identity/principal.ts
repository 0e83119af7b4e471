import type { Role, SessionRecord } from "../storage/store.ts";
import type { Client } from "./client.ts";

/** The caller of an admitted request, for the access log. It has no secret. */
export interface Principal {
  readonly kind: "anonymous" | "foreign" | "proxy_token" | "agent_token";
  /** Login of the user whose credential is used, where it is known. */
  readonly login: string | undefined;
  readonly tokenId: string | undefined;
}

/** Who makes a management request. */
export interface Identity {
  readonly userId: string;
  readonly login: string;
  readonly role: Role;
  readonly sessionId: string;
  /** Whether a login session or an administration token was shown. */
  readonly kind: SessionRecord["kind"];
  /** The program that a person approved by the device flow; undefined: a session of a person's browser. */
  readonly device?: string;
}

/** Somebody who asks for an action of the administration, and the program that they use. */
export interface Actor extends Identity {
  readonly client: Client;
}
