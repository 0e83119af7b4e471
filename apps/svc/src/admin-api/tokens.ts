import { z } from "zod";
import { BOUNDS } from "../config/defaults.ts";
import type { SessionEnd } from "../administration/session-end.ts";
import type { OwnAddress } from "../own-address.ts";
import type { TokenRecord } from "../storage/store.ts";
import { claimedKind } from "../credentials/token-format.ts";
import { EVERYTHING, RESOURCES } from "../scopes/scopes.ts";
import type { TokenMint } from "../administration/token-mint.ts";
import { callerOf, operation, type Operation } from "./operation.ts";
import { nextPage, timePagingQuery } from "./paging.ts";
import { ALONGSIDE_FIELDS, MISSING } from "./validation.ts";

const PATH = "/api/tokens";
/** Most repositories of one token; each is checked at the code host. */
const MAX_REPOSITORIES = 100;
const MAX_TEXT = 500;
/** As tokens.requests_per_minute. */
const MAX_REQUESTS_PER_MINUTE = BOUNDS.requestsPerMinute.max;
/** Tokens of one answer. */
const MAX_LISTED = 1000;

const repository = z.string().min(1).max(201);

/** Body of POST. */
export const tokenRequestSchema = z
  .strictObject({
    repository: repository.optional().meta({ description: "<owner>/<repo>", example: "acme/widgets" }),
    repositories: z.array(repository).min(1).max(MAX_REPOSITORIES).optional().meta({
      description: "Several, in the place of `repository`",
    }),
    scopes: z
      .string()
      .min(1)
      .max(2000)
      .meta({
        description: `Comma-separated <resource>:<level>; levels read and write; resources ${RESOURCES.join(", ")}`,
        example: "contents:read",
      }),
    duration: z.string().min(1).max(50).meta({
      description:
        "Lifetime: numbers with a unit s, m, h, d or w, compound allowed; at least 60s. `never` where that is allowed",
      example: "1h",
    }),
    type: z.enum(["proxy", "agent"]).optional().meta({ description: "Default proxy" }),
    app_id: z.string().min(1).max(MAX_TEXT).optional().meta({
      description: "Agent tokens: id of a registered app; default the default app",
    }),
    installation: z.string().min(1).max(MAX_TEXT).optional().meta({
      description:
        "Agent tokens: the account that the app is installed for, default the owner of the repositories",
    }),
    session_id: z.string().min(1).max(MAX_TEXT).optional().meta({
      description: "The caller's own label for the run that it is for",
    }),
    description: z.string().max(MAX_TEXT).optional(),
    ip_allow: z.array(z.string()).max(MAX_REPOSITORIES).optional().meta({
      description: "Addresses and networks that may use it; default every one",
    }),
    requests_per_minute: z.int().min(1).max(MAX_REQUESTS_PER_MINUTE).optional().meta({
      description: "Requests a minute, git and API together; tokens.requests_per_minute bounds it, too",
    }),
  })
  .superRefine((body, context) => {
    if (body.repository === undefined && body.repositories === undefined) {
      context.addIssue({ code: "custom", path: ["repository"], message: MISSING });
    }
    if (body.type === "agent") return;
    for (const field of ["app_id", "installation"] as const) {
      if (body[field] === undefined) continue;
      context.addIssue({ code: "custom", path: [field], message: "is for agent tokens only" });
    }
  }, ALONGSIDE_FIELDS)
  .meta({ id: "TokenRequest" });

const time = z.iso.datetime();
const shown = {
  id: z.string().meta({ description: "UUIDv7" }),
  type: z.enum(["proxy", "agent"]),
  repositories: z.array(z.string()),
  app_id: z.string().nullable().meta({ description: "Agent tokens: id of the registered app" }),
  installation: z.string().nullable(),
  scopes: z.partialRecord(z.enum([EVERYTHING, ...RESOURCES]), z.enum(["read", "write"])),
  expires_at: time.nullable(),
  created_at: time,
  session_id: z.string().nullable(),
  description: z.string().nullable(),
};
/** A token as lists show it: never its value. */
export const tokenSchema = z
  .strictObject({
    ...shown,
    token_start: z.string().meta({ description: "The first 12 characters" }),
    username: z.string().meta({ description: "Who made it" }),
    ip_allow: z.array(z.string()),
    requests_per_minute: z.int().nullable().meta({ description: "Its own bound; null: none" }),
    minted_by: z.string().nullable().meta({
      description: "Id of the session or administration token that it was made with",
    }),
    last_used_at: time.nullable(),
    last_ip: z.string().nullable(),
    use_count: z.int(),
  })
  .meta({ id: "Token" });
export const mintedTokenSchema = z
  .strictObject({ token: z.string().meta({ description: "The secret; it is not shown again" }), ...shown })
  .meta({ id: "MintedToken" });

/** Minting and revoking tokens: every user for themselves, an admin for all. */
export function tokenOperations(mint: TokenMint, sessionEnd: SessionEnd, address: OwnAddress): Operation[] {
  const common = { tag: "Tokens", access: "user" } as const;
  return [
    operation({
      ...common,
      method: "POST",
      path: PATH,
      id: "createToken",
      summary: "Create a scoped proxy or agent token",
      description:
        "Agent tokens need the admin role and a registered app, whose installation gives the credential.",
      body: tokenRequestSchema,
      query: z.strictObject({
        check: z.enum(["true", "false"]).optional().meta({
          description: "false: do not ask the code host whether you can reach the repositories",
        }),
      }),
      result: mintedTokenSchema,
      successStatus: 201,
      refusals: { 409: "An agent token needs a registered app", 502: "The code host could not be asked" },
      async handle({ identity, client, body, query }) {
        const request = { ...body, type: body.type ?? "proxy", ip_allow: body.ip_allow ?? [] };
        const { token, record } = await mint.mint(
          callerOf(identity),
          client,
          request,
          query.check !== "false",
        );
        return {
          status: 201,
          headers: { Location: `${address.baseUrl}${PATH}/${record.id}` },
          body: { token: token.reveal(), ...commonView(record) },
        };
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: PATH,
      id: "listTokens",
      summary: "List your tokens; an admin sees all",
      description: `Newest first, at most ${MAX_LISTED} at once; a \`Link\` header leads to the next page.`,
      query: z.strictObject({
        ...timePagingQuery,
        limit: timePagingQuery.limit.meta({ description: `Default ${MAX_LISTED}` }),
        mine: z.enum(["true", "false"]).optional().meta({ description: "true: an admin's own only" }),
      }),
      result: z.array(tokenSchema),
      successStatus: 200,
      async handle({ identity, query }) {
        const { limit, cursor, mine } = query;
        const { records, next } = await mint.list(callerOf(identity), {
          limit: limit === undefined ? MAX_LISTED : Number(limit),
          cursor,
          mine: mine === "true",
        });
        const url = `${address.baseUrl}${PATH}`;
        const headers = next === undefined ? {} : nextPage(url, { limit, mine, cursor: next });
        const logins = await mint.loginsOf(callerOf(identity), records);
        return { status: 200, headers, body: records.map((record) => tokenView(record, logins)) };
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: `${PATH}/{id}`,
      id: "getToken",
      summary: "Show one token",
      result: tokenSchema,
      successStatus: 200,
      refusals: { 404: "No token of yours has this id" },
      async handle({ identity, parameters }) {
        const caller = callerOf(identity);
        const record = await mint.get(caller, parameters["id"] ?? "");
        return { status: 200, body: tokenView(record, await mint.loginsOf(caller, [record])) };
      },
    }),
    operation({
      ...common,
      method: "DELETE",
      path: `${PATH}/{id}`,
      id: "revokeToken",
      summary: "Revoke a token at once",
      successStatus: 204,
      refusals: { 404: "No token of yours has this id" },
      async handle({ identity, client, parameters }) {
        await mint.revoke(callerOf(identity), client, parameters["id"] ?? "");
        return { status: 204 };
      },
    }),
    operation({
      ...common,
      method: "POST",
      path: `${PATH}/revoke`,
      id: "revokeTokenByValue",
      summary: "Revoke a leaked token by its value, whoever minted it",
      description:
        "Proxy and agent tokens; sessions and administration tokens, too, with every token that was made with them.",
      body: z.strictObject({ token: z.string().min(1).max(MAX_TEXT) }).meta({ id: "TokenValue" }),
      successStatus: 204,
      refusals: { 404: "No token has this value" },
      async handle({ identity, client, body }) {
        const caller = callerOf(identity);
        if (claimedKind(body.token) === "session") await sessionEnd.endByValue(caller, client, body.token);
        else await mint.revokeByValue(caller, client, body.token);
        return { status: 204 };
      },
    }),
  ];
}

function tokenView(record: TokenRecord, logins: ReadonlyMap<string, string>): z.output<typeof tokenSchema> {
  return {
    ...commonView(record),
    token_start: record.tokenStart,
    username: logins.get(record.userId) ?? "",
    ip_allow: [...record.ipAllow],
    requests_per_minute: record.requestsPerMinute ?? null,
    minted_by: record.mintedBy ?? null,
    last_used_at: isoTime(record.lastUsedAt),
    last_ip: record.lastIp ?? null,
    use_count: record.useCount,
  };
}

function commonView(record: TokenRecord): Omit<z.output<typeof mintedTokenSchema>, "token"> {
  return {
    id: record.id,
    type: record.type,
    repositories: [...record.repositories],
    app_id: record.appId ?? null,
    installation: record.installation ?? null,
    scopes: { ...record.scopes },
    expires_at: isoTime(record.expiresAt),
    created_at: new Date(record.createdAt).toISOString(),
    session_id: record.sessionId ?? null,
    description: record.description ?? null,
  };
}

function isoTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
