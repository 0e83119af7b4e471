import { NOTIFICATION_LEVELS } from "../desktop/notification.ts";
import { SCHEMAS, object, reference, text, type Json } from "./json-schemas.ts";
import { PROBLEM_STATUS } from "./problem.ts";

/** One operation: what it does, and what it answers besides errors. */
interface Operation {
  readonly summary: string;
  readonly answer: string;
  readonly status?: number;
  readonly csrf?: boolean;
  readonly parameters?: readonly Json[];
  readonly body?: Json;
  /** Media type of the body. Default: JSON. */
  readonly bodyType?: string;
  readonly type?: string;
  /** Schema of a JSON answer; without one any object. */
  readonly schema?: Json;
  /** Further answers that are no errors, by status. */
  readonly also?: Readonly<Record<number, { readonly description: string; readonly schema: Json }>>;
}

const version = { type: "integer", minimum: 1 };
const values = {
  type: "object",
  description: "Any JSON values; numbers keep every digit.",
  additionalProperties: true,
};
const path: Json = {
  name: "path",
  in: "path",
  required: true,
  schema: text,
  description:
    "Path of a secret below your root, slashes as they are, taken exactly as written. Reading only: a folder ends in a slash.",
};
const ifMatch = (meaning: string): Json => ({
  name: "If-Match",
  in: "header",
  schema: text,
  description: meaning,
});
const query = (name: string, schema: Json, description: string): Json => ({
  name,
  in: "query",
  schema,
  description,
});
const secretBody = object({ fields: values });
const written = object({ path: text, version });

const webUrl = { type: "string", description: "http or https, with a host and without credentials." };

/** A form without CSRF token; 503 while another one of its kind runs. */
function peerAction(
  summary: string,
  status: string,
  properties: Json,
  required: readonly string[],
): Operation {
  return {
    summary,
    answer: "Done; 503 while another action of this kind runs, 502 when the desktop has not done it",
    body: { type: "object", required, properties },
    bodyType: "application/x-www-form-urlencoded",
    schema: object({ status: { type: "string", const: status } }),
  };
}

/** Every route of the JSON API. */
const OPERATIONS: Readonly<Record<string, Readonly<Record<string, Operation>>>> = {
  "/api/v1/status": {
    get: {
      summary: "State of the daemon; little of it while signed out",
      answer: "The state",
      schema: { oneOf: [reference("Status"), reference("PublicStatus")] },
    },
  },
  "/api/v1/rules": {
    get: {
      summary: "Sync rules with their state",
      answer: "The rules",
      schema: object({ rules: { type: "array", items: reference("Rule") } }),
    },
  },
  "/api/v1/csrf": {
    get: {
      summary: "A token for one change, good for 10 minutes",
      answer: "The token",
      schema: object({ token: text }),
    },
  },
  "/api/v1/token": {
    get: {
      summary: "The store token that the daemon holds",
      answer: "The token",
      schema: object({ token: text, expires_at: { type: ["string", "null"], format: "date-time" } }),
    },
  },
  "/api/v1/sync": {
    post: {
      summary: "Starts a sync cycle",
      answer: "It runs",
      status: 202,
      csrf: true,
      parameters: [query("wait", { type: "boolean" }, "Answers at the end of the cycle.")],
      schema: object({ job: text }),
      also: { 200: { description: "With wait=true: it has ended", schema: reference("Cycle") } },
    },
  },
  "/api/v1/unlock": {
    post: {
      summary: "A link that lets a browser in once",
      answer: "The link",
      status: 201,
      csrf: true,
      schema: object({ url: text, expires_at: text }),
    },
  },
  "/api/v1/events": {
    get: {
      summary: "State changes as they happen",
      answer: "Server-sent events named status",
      type: "text/event-stream",
    },
  },
  "/api/v1/config": {
    get: {
      summary: "The configuration as it applies, without credentials",
      answer: "The configuration",
      schema: object({ sources: { type: "array", items: text }, config: { type: "object" } }),
    },
  },
  "/api/v1/config/download": {
    get: {
      summary: "The same as a file",
      answer: "The file",
      type: "application/yaml",
      parameters: [
        query(
          "format",
          { type: "string", enum: ["yaml", "reg"], default: "yaml" },
          "Form of the file; reg is a Windows registry file (text/plain, UTF-16).",
        ),
      ],
    },
  },
  "/api/v1/secrets/{path}": {
    get: {
      summary: "Lists a folder, or returns a secret; values only with reveal=true",
      answer: "Keys of a folder, or names or values of a secret's fields; ETag is the version",
      parameters: [path, query("reveal", { type: "boolean" }, "Answers the values.")],
      schema: {
        oneOf: [
          object({ path: text, keys: { type: "array", items: text } }),
          object({ path: text, version, fields: { oneOf: [{ type: "array", items: text }, values] } }),
        ],
      },
    },
    post: {
      summary: "Creates a secret; 409 if there is one",
      answer: "Created",
      status: 201,
      csrf: true,
      parameters: [path],
      body: secretBody,
      schema: written,
    },
    put: {
      summary: "Replaces the whole document; 404 if there is none",
      answer: "Replaced",
      csrf: true,
      parameters: [path, ifMatch("Version that the change is based on; 409 if it is not the newest.")],
      body: secretBody,
      schema: written,
    },
    delete: {
      summary: "Deletes a secret with every version; there is no undelete",
      answer: "Deleted",
      csrf: true,
      parameters: [
        path,
        ifMatch(
          "Version that should be the newest. Checked just before the delete, so a change in between is not noticed (best effort).",
        ),
      ],
      schema: object({ path: text }),
    },
  },
  "/api/v1/remote/browse": {
    post: peerAction("Opens a web address in this host's browser", "opened", { url: webUrl }, ["url"]),
  },
  "/api/v1/remote/notify": {
    post: peerAction(
      "Raises a notification on this host's desktop",
      "raised",
      {
        level: { type: "string", enum: NOTIFICATION_LEVELS },
        title: text,
        body: text,
        action_url: webUrl,
      },
      ["level", "title"],
    ),
  },
  "/api/v1/remote/clipboard": {
    post: peerAction(
      "Puts a text on this host's clipboard",
      "copied",
      { text: { type: "string", minLength: 1, description: "UTF-8, at most 64 KiB, without NUL." } },
      ["text"],
    ),
  },
  "/api/openapi.json": { get: { summary: "This document", answer: "OpenAPI 3.1" } },
};

/** The OpenAPI 3.1 document of the JSON API. @param release version of the daemon */
export function openApiDocument(release: string): Json {
  const paths = Object.entries(OPERATIONS).map(([route, methods]) => [
    route,
    Object.fromEntries(Object.entries(methods).map(([method, operation]) => [method, describe(operation)])),
  ]);
  return {
    openapi: "3.1.0",
    info: {
      title: "Credential-sync daemon",
      version: release,
      description:
        "On loopback, for the user that runs the daemon. Where web.require_unlock applies, send the web key as bearer token.",
    },
    paths: Object.fromEntries(paths) as Json,
    components: {
      securitySchemes: { webKey: { type: "http", scheme: "bearer" } },
      schemas: {
        Problem: object(
          { error: text, code: { type: "string", enum: Object.keys(PROBLEM_STATUS) } },
          { hint: text },
        ),
        ...SCHEMAS,
      },
    },
    security: [{}, { webKey: [] }],
  };
}

function describe(operation: Operation): Json {
  const {
    summary,
    answer,
    status = 200,
    type = "application/json",
    schema = { type: "object" },
    body,
    bodyType = "application/json",
    also = {},
  } = operation;
  const csrf = {
    name: "X-CSRF-Token",
    in: "header",
    required: true,
    schema: text,
    description: "From /api/v1/csrf.",
  };
  const parameters = [...(operation.parameters ?? []), ...(operation.csrf === true ? [csrf] : [])];
  const content = { [type]: type === "application/json" ? { schema } : { schema: text } };
  const problem = { "application/json": { schema: reference("Problem") } };
  return {
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: { required: true, content: { [bodyType]: { schema: body } } },
    }),
    responses: {
      [status]: { description: answer, content },
      ...Object.fromEntries(
        Object.entries(also).map(([other, { description, schema: shape }]) => [
          other,
          { description, content: { "application/json": { schema: shape } } },
        ]),
      ),
      default: { description: "What was refused and why; code is for programs", content: problem },
    },
  };
}
