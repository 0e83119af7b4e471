import assert from "node:assert/strict";
import {
  startAdministration,
  type AdministrationOptions,
  type TestAdministration,
} from "../assemble/administration.test-kit.ts";

export interface ApiResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body, or an empty object if it is not JSON. */
  readonly json: Record<string, unknown>;
}

export interface Sent {
  /** Default: POST with a body, else GET. */
  readonly method?: string;
  /** Default: the admin's session. With the value undefined, no credential. */
  readonly token?: string | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, as JSON unless `headers` say otherwise. */
  readonly raw?: string;
  readonly headers?: Record<string, string>;
}

export type CachedRepository = Record<string, unknown> & { readonly id: string };

/** The real management surface with a session of an admin and one of a user, and a client of its API. */
export interface ApiClient {
  readonly administration: TestAdministration;
  readonly admin: string;
  readonly user: string;
  readonly send: (path: string, sent?: Sent) => Promise<ApiResponse>;
  /** Puts a repository of `acme` on the list; the fields of `body` come before the defaults. */
  readonly listed: (body?: Record<string, unknown>) => Promise<CachedRepository>;
}

export async function startApiClient(options: AdministrationOptions = {}): Promise<ApiClient> {
  const administration = await startAdministration(options);
  const admin = await administration.session("root", "admin");
  const user = await administration.session("alice", "user");
  const send = async (path: string, sent: Sent = {}): Promise<ApiResponse> => {
    const token = "token" in sent ? sent.token : admin;
    const content = sent.raw ?? (sent.body === undefined ? undefined : JSON.stringify(sent.body));
    const response = await fetch(administration.url + path, {
      method: sent.method ?? (content === undefined ? "GET" : "POST"),
      redirect: "manual",
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(content === undefined ? {} : { "content-type": "application/json" }),
        ...sent.headers,
      },
      ...(content === undefined ? {} : { body: content }),
    });
    const text = await response.text();
    const isJson = (response.headers.get("content-type") ?? "").includes("json");
    const json = isJson ? (JSON.parse(text) as Record<string, unknown>) : {};
    return { status: response.status, headers: response.headers, text, json };
  };
  let names = 0;
  return {
    administration,
    admin,
    user,
    send,
    async listed(body = {}) {
      const sent = { owner: "acme", name: `r${++names}`, ...body };
      const response = await send("/api/cached-repos", { body: sent });
      assert.equal(response.status, 201, response.text);
      return response.json as CachedRepository;
    },
  };
}

/** The places of the mistakes that a problem names, as JSON pointers. */
export function pointers(response: ApiResponse): unknown[] {
  return ((response.json["errors"] ?? []) as { pointer: string }[]).map(({ pointer }) => pointer);
}
