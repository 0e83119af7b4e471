import { z } from "zod";
import type { SessionUseCases } from "../administration/sessions/sessions.ts";
import { timePagingQuery } from "../administration/paging.ts";
import { MAX_LISTED, type Tokens } from "../administration/tokens/tokens.ts";
import { tokenRequestSchema, tokenValueSchema } from "../administration/tokens/token-input.ts";
import { revokeByValue } from "../administration/sessions/token-value.ts";
import type { OwnAddress } from "../own-address.ts";
import { EVERYTHING, RESOURCES } from "../scopes/scopes.ts";
import type { TokenRecord } from "../storage/store.ts";
import { isoTime, operation, type Operation } from "./operation.ts";
import { nextPage } from "./paging.ts";
import { createdToken, tokenStartField, tokenValueField } from "./token-fields.ts";

const PATH = "/api/tokens";

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
    token_start: tokenStartField,
    username: z.string().meta({ description: "Who made it" }),
    ip_allow: z.array(z.string()),
    requests_per_minute: z.int().nullable().meta({ description: "Its own limit; null: none" }),
    minted_by: z.string().nullable().meta({
      description: "Id of the session or administration token that it was made with",
    }),
    last_used_at: time.nullable(),
    last_ip: z.string().nullable(),
    use_count: z.int(),
  })
  .meta({ id: "Token" });
export const mintedTokenSchema = z
  .strictObject({ token: tokenValueField, ...shown })
  .meta({ id: "MintedToken" });

/** Making and revoking tokens: every user for themselves, an admin for all. */
export function tokenOperations(tokens: Tokens, sessions: SessionUseCases, address: OwnAddress): Operation[] {
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
      async handle({ actor, body, query }) {
        const { token, record } = await tokens.create(actor, body, query.check !== "false");
        return createdToken(`${address.baseUrl}${PATH}`, token, commonView(record));
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: PATH,
      id: "listTokens",
      summary: "List your tokens; an admin sees all",
      description: `Newest first, maximum ${MAX_LISTED} in a page; a \`Link\` header leads to the next page.`,
      query: z.strictObject({
        ...timePagingQuery,
        limit: timePagingQuery.limit.meta({ description: `Default ${MAX_LISTED}` }),
        mine: z.enum(["true", "false"]).optional().meta({ description: "true: an admin's own only" }),
      }),
      result: z.array(tokenSchema),
      async handle({ actor, query: { limit, cursor, mine } }) {
        const { records, next } = await tokens.list(actor, {
          limit: limit === undefined ? MAX_LISTED : Number(limit),
          cursor,
          mine: mine === "true",
        });
        const url = `${address.baseUrl}${PATH}`;
        const headers = next === undefined ? {} : nextPage(url, { limit, mine, cursor: next });
        const logins = await tokens.loginsOf(actor, records);
        return { headers, body: records.map((record) => tokenView(record, logins)) };
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: `${PATH}/{id}`,
      id: "getToken",
      summary: "Show one token",
      result: tokenSchema,
      refusals: { 404: "No token of yours has this id" },
      async handle({ actor, id }) {
        const record = await tokens.get(actor, id);
        return { body: tokenView(record, await tokens.loginsOf(actor, [record])) };
      },
    }),
    operation({
      ...common,
      method: "DELETE",
      path: `${PATH}/{id}`,
      id: "revokeToken",
      summary: "Revoke a token immediately",
      refusals: { 404: "No token of yours has this id" },
      handle: async ({ actor, id }) => tokens.revoke(actor, id),
    }),
    operation({
      ...common,
      method: "POST",
      path: `${PATH}/revoke`,
      id: "revokeTokenByValue",
      summary: "Revoke a leaked token of any user by its value",
      description:
        "Proxy and agent tokens; sessions and administration tokens, too, with every token that was made with them.",
      body: tokenValueSchema,
      refusals: { 404: "No token has this value" },
      handle: async ({ actor, body }) => revokeByValue({ tokens, sessions }, actor, body),
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
    created_at: isoTime(record.createdAt),
    session_id: record.sessionId ?? null,
    description: record.description ?? null,
  };
}
