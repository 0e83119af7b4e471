import { OPENAPI_PATH } from "@devplat/web-kit";
import {
  openApiDocument,
  type DescribedResponse,
  type DescribedOperation,
  type Json,
} from "@devplat/web-kit/openapi";
import { z } from "zod";
import { NOTIFICATION_LEVELS } from "../../desktop/notification.ts";
import { agentStatusSchema, cycleResultSchema, publicStatusSchema, ruleViewSchema } from "../../status.ts";
import { offeredKeySchema, remoteViewSchema } from "../../remote-view.ts";
import { FAILURE_CLASSES } from "../forwards/openssh/failure.ts";
import { consentBody, newRemoteBody, remoteEditBody, repinBody } from "../forwards/remote-request.ts";
import { sshAgentStatusSchema } from "../../ssh-agent-view.ts";
import { answerBody, unlockBody } from "../ssh-agent/ssh-agent-request.ts";
import { unmountBody } from "../mount/mount-request.ts";
import { PROBLEM_TYPES } from "./problems/problem.ts";

/** Description of an operation. Left out: everything that is the same for all of them. */
type Details = Pick<DescribedOperation, "parameters" | "query" | "body"> & {
  readonly headers?: z.ZodRawShape;
};

const text = z.string();
const time = text.meta({ format: "date-time" });
const version = z.int().positive();
const webUrl = text.describe("http or https, with a host and without credentials.");
const status = z.discriminatedUnion("authenticated", [
  agentStatusSchema.extend({ authenticated: z.literal(true) }).meta({ id: "Status" }),
  publicStatusSchema,
]);
const cycle = z.object({ job: text, ...cycleResultSchema.shape }).meta({ id: "Cycle" });
const written = z.object({ path: text, version });
const mounted = z.object({ mounted: z.boolean() });
const values = z.looseObject({}).describe("Any JSON values; numbers keep every digit.");

const secretPath = {
  path: "Path of a secret below your root, slashes as they are, taken exactly as written. Reading only: a folder ends in a slash.",
};
const secretBody = { schema: z.object({ fields: values }) };
const ifMatch = (meaning: string): z.ZodRawShape => ({ "If-Match": text.optional().describe(meaning) });
const remoteHost = { host: "Host of a remote, without regard to case, percent-encoded." };
const CSRF = { "X-CSRF-Token": text.describe("From /api/v1/csrf.") };

function operation(
  method: string,
  path: string,
  summary: string,
  responses: Readonly<Record<number, DescribedResponse>>,
  { headers, ...details }: Details = {},
): DescribedOperation {
  return {
    method,
    path,
    summary,
    responses,
    ...details,
    headers: headers && z.object(headers),
    problems: { default: "What was refused and why; code is for programs" },
  };
}

function get(
  path: string,
  summary: string,
  description: string,
  schema: z.ZodType,
  details?: Details,
): DescribedOperation {
  return operation("GET", path, summary, { 200: { description, schema } }, details);
}

/** A form without CSRF token; 503 while another one of its kind runs. */
function peerAction(kind: string, summary: string, done: string, form: z.ZodType): DescribedOperation {
  return operation(
    "POST",
    `/api/v1/remote/${kind}`,
    summary,
    {
      200: {
        description: "Done; 503 while another action of this kind runs, 502 when the desktop has not done it",
        schema: z.object({ status: z.literal(done) }),
      },
    },
    { body: { schema: form, type: "application/x-www-form-urlencoded" } },
  );
}

/** An action on one remote. */
function remoteAction(
  action: string,
  summary: string,
  responses: Readonly<Record<number, DescribedResponse>>,
  body?: DescribedOperation["body"],
): DescribedOperation {
  return operation("POST", `/api/v1/ssh/remotes/{host}/${action}`, summary, responses, {
    parameters: remoteHost,
    headers: CSRF,
    body,
  });
}

/** Every route of the JSON API. */
const OPERATIONS: readonly DescribedOperation[] = [
  get("/api/v1/status", "State of the daemon; little of it while signed out", "The state", status),
  get(
    "/api/v1/rules",
    "Sync rules with their state",
    "The rules",
    z.object({ rules: z.array(ruleViewSchema) }),
  ),
  get("/api/v1/csrf", "A token for one change, good for 10 minutes", "The token", z.object({ token: text })),
  get(
    "/api/v1/token",
    "The store token that the daemon holds",
    "The token",
    z.object({ token: text, expires_at: time.nullable() }),
  ),
  operation(
    "POST",
    "/api/v1/sync",
    "Starts a sync cycle",
    {
      202: { description: "It runs", schema: z.object({ job: text }) },
      200: { description: "With wait=true: it has ended", schema: cycle },
    },
    {
      headers: CSRF,
      query: z.object({
        wait: z.boolean().optional().describe("Answers at the end of the cycle."),
        secret: text
          .optional()
          .describe("Path of a secret that was just changed: the mount and the volumes look at it again."),
      }),
    },
  ),
  operation(
    "POST",
    "/api/v1/unlock",
    "A link that lets a browser in once",
    { 201: { description: "The link", schema: z.object({ url: text, expires_at: time }) } },
    { headers: CSRF },
  ),
  operation("GET", "/api/v1/events", "State changes as they happen", {
    200: { description: "Server-sent events named status", schema: text, type: "text/event-stream" },
  }),
  get(
    "/api/v1/config",
    "The configuration as it applies, without credentials",
    "The configuration",
    z.object({ sources: z.array(text), config: z.looseObject({}) }),
  ),
  operation(
    "GET",
    "/api/v1/config/download",
    "The same as a file",
    { 200: { description: "The file", schema: text, type: "application/yaml" } },
    {
      query: z.object({
        format: z
          .enum(["yaml", "reg"])
          .default("yaml")
          .describe("Form of the file; reg is a Windows registry file (text/plain, UTF-16)."),
      }),
    },
  ),
  get(
    "/api/v1/secrets/{path}",
    "Lists a folder, or returns a secret; values only with reveal=true",
    "Keys of a folder, or names or values of a secret's fields; ETag is the version",
    z.union([
      z.object({ path: text, keys: z.array(text) }),
      z.object({ path: text, version, fields: z.union([z.array(text), values]) }),
    ]),
    {
      parameters: secretPath,
      query: z.object({ reveal: z.boolean().optional().describe("Answers the values.") }),
    },
  ),
  operation(
    "POST",
    "/api/v1/secrets/{path}",
    "Creates a secret; 409 if there is one",
    { 201: { description: "Created", schema: written } },
    { parameters: secretPath, headers: CSRF, body: secretBody },
  ),
  operation(
    "PUT",
    "/api/v1/secrets/{path}",
    "Replaces the whole document; 404 if there is none",
    { 200: { description: "Replaced", schema: written } },
    {
      parameters: secretPath,
      headers: { ...ifMatch("Version that the change is based on; 409 if it is not the newest."), ...CSRF },
      body: secretBody,
    },
  ),
  operation(
    "DELETE",
    "/api/v1/secrets/{path}",
    "Deletes a secret with every version. This cannot be undone",
    { 200: { description: "Deleted", schema: z.object({ path: text }) } },
    {
      parameters: secretPath,
      headers: {
        ...ifMatch(
          "Version that should be the newest. Checked just before the delete, so a change in between is not noticed (best effort).",
        ),
        ...CSRF,
      },
    },
  ),
  get(
    "/api/v1/ssh/remotes",
    "Managed SSH forwards with their state",
    "The remotes in the order of ssh.yaml",
    z.object({
      remotes: z.array(remoteViewSchema),
      file_problem: text.nullable().describe("Why ssh.yaml cannot be used now; running forwards stay up"),
    }),
  ),
  operation(
    "POST",
    "/api/v1/ssh/remotes",
    "Adds a remote: learns the host's key, connects once, then saves it",
    {
      201: {
        description:
          "Saved; 409 host_key_unknown while nobody has confirmed the host's key, 422 if the connection failed",
        schema: remoteViewSchema,
      },
    },
    { headers: CSRF, body: { schema: newRemoteBody } },
  ),
  operation(
    "PATCH",
    "/api/v1/ssh/remotes/{host}",
    "Changes a remote. Null takes the default of a key again",
    { 200: { description: "Changed", schema: remoteViewSchema } },
    { parameters: remoteHost, headers: CSRF, body: { schema: remoteEditBody } },
  ),
  operation(
    "DELETE",
    "/api/v1/ssh/remotes/{host}",
    "Removes a remote and ends its forward",
    { 204: { description: "Removed" } },
    { parameters: remoteHost, headers: CSRF },
  ),
  remoteAction(
    "host-key",
    "Asks the host for its key again and pins it",
    {
      200: {
        description: "Pinned; 409 host_key_unknown, with the key, while nobody has confirmed it",
        schema: remoteViewSchema,
      },
    },
    { schema: repinBody, optional: true },
  ),
  remoteAction("retry", "Tries to connect now", {
    202: { description: "It is tried", schema: z.object({ status: z.literal("retrying") }) },
  }),
  remoteAction("revoke", "Revokes the tokens that are lent to the host", {
    204: { description: "Revoked" },
  }),
  remoteAction(
    "consent",
    "Answers the question whether a token may be lent to the host",
    { 204: { description: "Answered; 404 if no program of the host waits for the answer" } },
    { schema: consentBody },
  ),
  operation(
    "POST",
    "/api/v1/peer-socket/consent",
    "Answers the question whether a token may be lent over the peer socket",
    { 204: { description: "Answered; 404 if no host waits for the answer, or the peer socket is off" } },
    { headers: CSRF, body: { schema: consentBody } },
  ),
  operation(
    "POST",
    "/api/v1/peer-socket/revoke",
    "Revokes the tokens that are lent over the peer socket",
    { 204: { description: "Revoked" } },
    { headers: CSRF },
  ),
  get(
    "/api/v1/ssh-agent",
    "State of the SSH agent; 404 ssh_agent_off while it is off",
    "Its sockets, keys by source, refusals and questions; never a private key",
    sshAgentStatusSchema,
  ),
  operation(
    "POST",
    "/api/v1/ssh-agent/refresh",
    "Looks the keys of the SSH agent up again",
    { 200: { description: "The state after it", schema: sshAgentStatusSchema } },
    { headers: CSRF },
  ),
  operation(
    "POST",
    "/api/v1/ssh-agent/keys/unlock",
    "Opens a key that has a passphrase; 429 after too many wrong passphrases",
    { 204: { description: "Opened" } },
    { headers: CSRF, body: { schema: unlockBody } },
  ),
  operation(
    "POST",
    "/api/v1/ssh-agent/keys/show",
    "Shows the daemon's keys again that ssh-add -D has hidden",
    { 204: { description: "Shown" } },
    { headers: CSRF },
  ),
  operation(
    "POST",
    "/api/v1/ssh-agent/questions/{id}",
    "Answers a question that waits for the user",
    { 204: { description: "Answered; 404 if nobody waits for the answer any more" } },
    { parameters: { id: "Id of the question." }, headers: CSRF, body: { schema: answerBody } },
  ),
  operation(
    "POST",
    "/api/v1/mount",
    "Makes the filesystem mount again",
    { 200: { description: "It is mounted; 409 with the reason if it cannot be", schema: mounted } },
    { headers: CSRF },
  ),
  operation(
    "POST",
    "/api/v1/unmount",
    "Removes the filesystem mount, until it is mounted again or the daemon starts again",
    { 200: { description: "It is removed; 409 while files on it are open", schema: mounted } },
    { headers: CSRF, body: { schema: unmountBody } },
  ),
  operation(
    "POST",
    "/api/v1/docker/volumes/{name}/release",
    "Drops all mounts of a container volume whose engine has forgotten them, and removes its files",
    {
      200: {
        description: "The number of mounts that were dropped",
        schema: z.object({ name: text, mounts: z.int().nonnegative() }),
      },
    },
    { parameters: { name: "Name of the volume." }, headers: CSRF },
  ),
  peerAction("browse", "Opens a web address in this host's browser", "opened", z.object({ url: webUrl })),
  peerAction(
    "notify",
    "Raises a notification on this host's desktop",
    "raised",
    z.object({
      level: z.enum(NOTIFICATION_LEVELS),
      title: text,
      body: text.optional(),
      action_url: webUrl.optional(),
    }),
  ),
  peerAction(
    "clipboard",
    "Puts a text on this host's clipboard",
    "copied",
    z.object({ text: text.min(1).describe("UTF-8, at most 64 KiB, without NUL.") }),
  ),
  get(OPENAPI_PATH, "This document", "OpenAPI 3.1", z.looseObject({})),
];

/** The OpenAPI 3.1 document of the JSON API. @param release version of the daemon */
export function apiDocument(release: string): Json {
  return openApiDocument({
    info: {
      title: "Credential-sync daemon",
      version: release,
      description:
        "On loopback, for the user that runs the daemon. Where web.require_unlock applies, send the web key as bearer token.",
    },
    operations: OPERATIONS,
    problemTypes: PROBLEM_TYPES,
    problemExtensions: {
      error: text.describe("The same as detail"),
      offered: offeredKeySchema.optional().describe("With host_key_unknown: the key to be confirmed"),
      class: z.enum(FAILURE_CLASSES).optional().describe("With connection_failed: kind of the failure"),
      line: z.int().nonnegative().optional().describe("With file_invalid: line of the fault; 0: none"),
    },
    securitySchemes: { webKey: { type: "http", scheme: "bearer" } },
    security: [{}, { webKey: [] }],
  });
}
