export interface JsonRequest {
  readonly method: string;
  /** Bearer token, or a whole `Authorization` header. None, or an empty one: the request is anonymous. */
  readonly token?: string | undefined;
  /** Sent as JSON; a string as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request to an API. The caller must read the response. */
export async function sendJson(
  url: string,
  { method, token = "", body, headers = {} }: JsonRequest,
): Promise<Response> {
  return fetch(url, {
    method,
    headers: {
      ...(token === "" ? {} : { authorization: token.includes(" ") ? token : `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
}

/** As {@link sendJson}. @returns the status and the body, which is a JSON object or empty */
export async function callJson(
  url: string,
  request: JsonRequest,
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const response = await sendJson(url, request);
  const text = await response.text();
  return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as Record<string, unknown> };
}
