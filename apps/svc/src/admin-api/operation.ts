import type { z } from "zod";
import type { Access } from "../administration/permission.ts";
import type { Client } from "../identity/client.ts";
import type { Actor } from "../identity/principal.ts";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** One request. The use case checks its body; the query is as the operation's schema gives it. */
export interface Call<Query> {
  /** Who calls. @throws where the access is `public` */
  readonly actor: Actor;
  readonly client: Client;
  /** The path's `{id}` part; empty where it has none. */
  readonly id: string;
  readonly query: Query;
  /** Parsed JSON; undefined where the operation takes no body. */
  readonly body: unknown;
  /** The `If-Match` header. */
  readonly ifMatch: string | undefined;
}

export interface OperationResponse {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; undefined: no body. */
  readonly body?: unknown;
}

/** An endpoint as it is served, and as the OpenAPI document describes it: one value, so that the two cannot differ. */
export interface Operation<Query = unknown> {
  readonly method: Method;
  /** OpenAPI form: `/api/cached-repos/{id}`. */
  readonly path: string;
  /** Name for generated clients. */
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** `public`: anybody. */
  readonly access: Access | "public";
  /** For the document, and because of it a JSON body is read. */
  readonly body?: z.ZodType;
  /** An object of strings. */
  readonly query?: z.ZodType<Query>;
  /** Schema of the successful answer; undefined: no body. */
  readonly result?: z.ZodType;
  /** Default: 200 with a result, 204 without. */
  readonly successStatus?: number;
  /** Statuses of refusals that are its own; those of every operation are added by the document. */
  readonly refusals?: Readonly<Record<number, string>>;
  /** Whether `If-Match` is looked at. */
  readonly conditional?: boolean;
  handle(call: Call<Query>): Promise<OperationResponse | void>;
}

/** Keeps the types of one operation together and forgets them, for lists of operations. */
export function operation<Query>(definition: Operation<Query>): Operation {
  return definition;
}

export function successStatusOf({ successStatus, result }: Operation): number {
  return successStatus ?? (result === undefined ? 204 : 200);
}

/** The response to a request that created a resource. @param location address of the resource */
export function created(location: string, { headers, body }: OperationResponse): OperationResponse {
  return { headers: { ...headers, Location: location }, body };
}

/** A time in milliseconds as the API gives it. */
export function isoTime(ms: number): string;
export function isoTime(ms: number | undefined): string | null;
export function isoTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
