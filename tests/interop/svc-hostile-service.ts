import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import { adminTokenSchema, newAdminTokenSchema } from "../../apps/svc/src/admin-api/admin-tokens.ts";
import { appSchema } from "../../apps/svc/src/admin-api/apps.ts";
import { repositorySchema } from "../../apps/svc/src/admin-api/cached-repos.ts";
import { explanationSchema } from "../../apps/svc/src/admin-api/scopes.ts";
import { mintedTokenSchema, tokenSchema } from "../../apps/svc/src/admin-api/tokens.ts";

/** Clears the screen, sets the title, writes the clipboard (OSC 52), turns text around, forges lines of its own. */
export const HOSTILE =
  "evil\u001b[2J\u001b]0;title\u0007\u001b]52;c;ZWNobw==\u0007\u009b31m\u0090\u007f\u202e\u2066\u200b\u2028\u0085\r\nsvc: forged\t\u0000";

/** Responses of the service: records with hostile text in every field, refusals, or a list that fills a pipe. */
export type HostileMode = "records" | "refusals" | "long";

export interface HostileService {
  readonly url: string;
  mode: HostileMode;
  stop(): Promise<void>;
}

/** Rows of a list that is larger than a pipe and the reader's buffer together. */
const LONG_ROWS = 3000;

/** A service that responds to the commands of `svc` like an attacker who controls each text in it, or the service itself. */
export async function startHostileService(): Promise<HostileService> {
  let mode: HostileMode = "records";
  const server = createServer((request, response) => {
    request.resume();
    request.once("end", () => answer(request, response, mode));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    get mode() {
      return mode;
    },
    set mode(value) {
      mode = value;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function answer({ method, url = "" }: IncomingMessage, response: ServerResponse, mode: HostileMode): void {
  const send = (status: number, body: unknown): void => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  };
  const path = url.replace(/\?.*/, "");
  if (mode === "refusals") {
    const error = { detail: HOSTILE, message: HOSTILE, hint: HOSTILE, code: HOSTILE };
    send(422, { ...error, error: "invalid_request", error_description: HOSTILE });
    return;
  }
  if (method === "DELETE" || path === "/auth/logout" || /\/(?:revoke|warm|purge)$/.test(path)) {
    send(202, undefined);
    return;
  }
  const rows = mode === "long" ? LONG_ROWS : 1;
  const list = (schema: z.ZodType, known: Record<string, unknown>): unknown[] => [
    ...Array.from({ length: rows }, () => hostile(schema)),
    { ...(hostile(schema) as object), ...known },
  ];
  const isList = method === "GET";
  if (path.startsWith("/api/cached-repos")) {
    send(200, isList ? list(repositorySchema, { owner: "a", name: "b" }) : hostile(repositorySchema));
  } else if (path === "/api/tokens") {
    send(200, isList ? list(tokenSchema, {}) : hostile(mintedTokenSchema));
  } else if (path.startsWith("/api/tokens/")) send(200, hostile(tokenSchema));
  else if (path === "/api/admin-tokens") {
    send(200, isList ? list(adminTokenSchema, {}) : hostile(newAdminTokenSchema));
  } else if (path.endsWith("/check")) {
    send(200, {
      app: hostile(appSchema),
      permissions: { [HOSTILE]: HOSTILE },
      installations: [{ account: HOSTILE, repositories: HOSTILE, suspended: true }],
    });
  } else if (path.startsWith("/api/apps")) {
    send(200, isList ? list(appSchema, { app_id: "77" }) : hostile(appSchema));
  } else if (path === "/api/scopes/explain") send(200, hostile(explanationSchema));
  else if (path === "/api/session") {
    send(200, { username: HOSTILE, role: HOSTILE, session_id: HOSTILE, account: HOSTILE });
  } else if (path === "/auth/device/code") {
    const times = { expires_in: 60, interval: 0 };
    send(200, { device_code: HOSTILE, user_code: HOSTILE, verification_uri: HOSTILE, ...times });
  } else if (path === "/auth/device/token") {
    send(200, { access_token: HOSTILE, username: HOSTILE, expires_in: 60 });
  } else send(404, { detail: HOSTILE });
}

/** A document of the schema with {@link HOSTILE} in the place of every text, number and key that is free. */
function hostile(schema: z.ZodType): unknown {
  const document = z.toJSONSchema(schema) as JsonSchema;
  return filled(document, document.$defs ?? {});
}

interface JsonSchema {
  readonly type?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
}

function filled(schema: JsonSchema, named: Readonly<Record<string, JsonSchema>>): unknown {
  if (schema.$ref !== undefined) return filled(named[schema.$ref.replace("#/$defs/", "")] ?? {}, named);
  const [first] = schema.anyOf ?? [];
  if (first !== undefined) return filled(first, named);
  if (schema.type === "boolean") return true;
  if (schema.type === "array") return [filled(schema.items ?? {}, named), HOSTILE];
  if (schema.type !== "object") return HOSTILE;
  const fields = Object.entries(schema.properties ?? { [HOSTILE]: {} });
  return Object.fromEntries(fields.map(([name, each]) => [name, filled(each, named)]));
}
