import type { Context, Hono } from "hono";
import { DEVICE_PAGE_PATH, type DeviceFlow } from "../identity/login/device-flow.ts";
import type { LoginLimits } from "../identity/login/login-limits.ts";
import { SESSION_LIFETIME_MS } from "../identity/login/sessions.ts";
import type { OwnAddress } from "../own-address.ts";
import { readForm } from "../http/request/request-body.ts";
import { clientOf } from "../http/request/management-client.ts";
import { documentOf, problemOf } from "../http/request/problem.ts";

const CODE_PATH = "/auth/device/code";
const TOKEN_PATH = "/auth/device/token";
const METADATA_PATH = "/.well-known/oauth-authorization-server";
const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code";
/** Pages show names of clients, so these have no blanks and no markup. */
const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export interface DeviceEndpoints {
  readonly flow: DeviceFlow;
  readonly limits: LoginLimits;
  readonly address: OwnAddress;
}

/**
 * The endpoints of the device flow (RFC 8628 sections 3.1 and 3.4) and their metadata (RFC 8414). Requests are forms, responses
 * are JSON with the errors of OAuth (RFC 6749 section 5.2), as its clients expect. Any client name is accepted: access comes
 * from the approval of a person.
 */
export function addDeviceEndpoints(app: Hono, { flow, limits, address }: DeviceEndpoints): void {
  app.get(METADATA_PATH, (context) => {
    const base = address.baseUrl;
    return context.json({
      issuer: base,
      device_authorization_endpoint: base + CODE_PATH,
      token_endpoint: base + TOKEN_PATH,
      grant_types_supported: [GRANT_TYPE],
      response_types_supported: [],
      token_endpoint_auth_methods_supported: ["none"],
      service_documentation: `${base}/docs`,
    });
  });

  app.post(CODE_PATH, async (context) =>
    respond(context, async (form) => {
      const client = clientOf(context);
      limits.login(client.address);
      const clientId = form.get("client_id") ?? "";
      if (!CLIENT_ID.test(clientId)) throw new OauthError("invalid_client", "client_id: a short name");
      // Other scopes have no meaning here, and are not an error (RFC 8628 section 3.1, RFC 6749 section 3.3).
      const wantsAdmin = (form.get("scope") ?? "").split(" ").includes("admin");
      const code = await flow.begin(clientId, client, wantsAdmin);
      const page = address.baseUrl + DEVICE_PAGE_PATH;
      return {
        device_code: code.deviceCode,
        user_code: code.userCode,
        verification_uri: page,
        verification_uri_complete: `${page}?user_code=${code.userCode}`,
        expires_in: code.expiresInSeconds,
        interval: code.intervalSeconds,
      };
    }),
  );

  app.post(TOKEN_PATH, async (context) =>
    respond(context, async (form) => {
      const client = clientOf(context);
      if (form.get("grant_type") !== GRANT_TYPE) {
        throw new OauthError("unsupported_grant_type", `grant_type: ${GRANT_TYPE}`);
      }
      const found = await flow.poll(form.get("device_code") ?? "", form.get("client_id") ?? "", client);
      if (found.kind === "error") {
        // A waiting program is slowed down by its interval. Guesses are limited by address.
        if (["expired_token", "invalid_grant"].includes(found.error)) limits.login(client.address);
        throw new OauthError(found.error, DESCRIPTIONS[found.error]);
      }
      return {
        access_token: found.session.token.reveal(),
        token_type: "Bearer",
        expires_in: SESSION_LIFETIME_MS / 1000,
        username: found.session.identity.login,
      };
    }),
  );

  for (const [path, allow] of [
    [METADATA_PATH, "GET, HEAD"],
    [CODE_PATH, "POST"],
    [TOKEN_PATH, "POST"],
  ] as const) {
    app.all(path, (context) =>
      context.json({ error: "invalid_request", error_description: `${path} takes ${allow}` }, 405, {
        Allow: allow,
      }),
    );
  }
}

const DESCRIPTIONS = {
  authorization_pending: "Nobody has approved the code yet",
  slow_down: "Ask less often",
  access_denied: "The person declined",
  expired_token: "The code has expired, or was never issued",
  invalid_grant: "The code is not this client's, or was used",
} as const;

class OauthError extends Error {
  readonly code: string;

  constructor(code: string, description: string) {
    super(description);
    this.name = "OauthError";
    this.code = code;
  }
}

async function respond(
  context: Context,
  handle: (form: URLSearchParams) => Promise<Record<string, unknown>>,
): Promise<Response> {
  try {
    return context.json(await handle(await readForm(context.req.raw)));
  } catch (error) {
    if (error instanceof OauthError) {
      return context.json({ error: error.code, error_description: error.message }, 400);
    }
    const problem = problemOf(error);
    if (problem === undefined) throw error;
    const { status, detail, hint } = documentOf(problem);
    const code = status === 503 || status === 429 ? "temporarily_unavailable" : "invalid_request";
    const description = [detail, hint].filter((part) => part !== undefined).join(". ");
    return Response.json(
      { error: status >= 500 && status !== 503 ? "server_error" : code, error_description: description },
      { status, headers: { ...problem.headers } },
    );
  }
}
