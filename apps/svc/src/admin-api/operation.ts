import type { Identity } from "../identity/principal.ts";
import type { z } from "zod";
import { SvcError } from "../errors.ts";
import type { Client } from "../identity/client.ts";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";
/** `public`: anybody. `user`: any session. `admin`: a session with the admin role. */
export type Access = "public" | "user" | "admin";

/** One request, checked: the types are what the operation's schemas give. */
export interface Call<Body, Query> {
  /** Undefined only where access is `public`. */
  readonly identity: Identity | undefined;
  /** From the path's `{name}` parts. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** The `If-Match` header. */
  readonly ifMatch: string | undefined;
  readonly client: Client;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; undefined: no body. */
  readonly body?: unknown;
}

/** An endpoint as it is served, and as the OpenAPI document describes it: one value, so that the two cannot differ. */
export interface Operation<Body = unknown, Query = unknown> {
  readonly method: Method;
  /** OpenAPI form: `/api/cached-repos/{id}`. */
  readonly path: string;
  /** Name for generated clients. */
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly access: Access;
  readonly body?: z.ZodType<Body>;
  /** An object of strings. */
  readonly query?: z.ZodType<Query>;
  /** Schema of the successful answer; undefined: no body. */
  readonly result?: z.ZodType;
  readonly successStatus: number;
  /** Statuses of refusals that are its own; those of every operation are added by the document. */
  readonly refusals?: Readonly<Record<number, string>>;
  /** Whether `If-Match` is looked at. */
  readonly conditional?: boolean;
  handle(call: Call<Body, Query>): Promise<Answer>;
}

/** Keeps the types of one operation together and forgets them, for lists of operations. */
export function operation<Body, Query>(definition: Operation<Body, Query>): Operation {
  return definition;
}

/** Who calls an operation whose access is not `public`. */
export function callerOf(identity: Identity | undefined): Identity {
  if (identity === undefined) throw new SvcError("forbidden", "A session is needed");
  return identity;
}
