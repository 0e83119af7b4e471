import type { IncomingMessage } from "node:http";
import { text as readText } from "node:stream/consumers";

/** A request to one of the code host's sides that are not git: its logins and its apps. */
export interface SideRequest {
  /** As the caller wrote it: `http://127.0.0.1:PORT`. */
  readonly base: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly text: string;
  /** The body as a form; empty when it is none. */
  readonly form: URLSearchParams;
}

export interface SideAnswer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body: string;
}

export async function readSideRequest(
  request: IncomingMessage,
  path: string,
  query: string,
): Promise<SideRequest> {
  const text = await readText(request);
  const isForm = (request.headers["content-type"] ?? "").startsWith("application/x-www-form-urlencoded");
  return {
    base: `http://${request.headers.host ?? ""}`,
    method: request.method ?? "",
    path,
    query: new URLSearchParams(query),
    authorization: request.headers.authorization,
    text,
    form: new URLSearchParams(isForm ? text : ""),
  };
}

export function json(status: number, body: unknown): SideAnswer {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  };
}

export function html(status: number, body: string): SideAnswer {
  return {
    status,
    headers: { "content-type": "text/html; charset=utf-8" },
    body: `<!doctype html><html lang="en"><title>Code host</title>${body}</html>`,
  };
}
