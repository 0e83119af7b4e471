import { z } from "zod";
import type { OwnAddress } from "../own-address.ts";
import type { SessionRecord } from "../storage/store.ts";
import type { AdminTokens } from "../administration/admin-tokens.ts";
import { callerOf, operation, type Operation } from "./operation.ts";
import { pageOf, pagingQuery } from "./paging.ts";
import { mintedTokensQuery } from "./sessions.ts";

const PATH = "/api/admin-tokens";
const MAX_NAME = 100;

const adminTokenRequestSchema = z
  .strictObject({
    name: z.string().trim().min(1).max(MAX_NAME).meta({ description: "For lists and the audit trail" }),
    duration: z.string().min(1).max(50).meta({
      description: "Lifetime: numbers with a unit s, m, h, d or w, compound allowed; at least 60s",
      example: "90d",
    }),
  })
  .meta({ id: "AdminTokenRequest" });

const time = z.iso.datetime();
const shown = {
  id: z.string().meta({ description: "UUIDv7" }),
  name: z.string(),
  created_at: time,
  expires_at: time,
};
/** A token as lists show it: never its value. */
export const adminTokenSchema = z
  .strictObject({
    ...shown,
    token_start: z.string().meta({ description: "The first 12 characters" }),
    user_id: z.string().meta({ description: "The admin as whom it acts" }),
    created_ip: z.string().nullable(),
    last_used_at: time.nullable().meta({ description: "To the minute" }),
  })
  .meta({ id: "AdminToken" });
export const newAdminTokenSchema = z
  .strictObject({ token: z.string().meta({ description: "The secret; it is not shown again" }), ...shown })
  .meta({ id: "NewAdminToken" });

/** Administration tokens: for programs that manage the service. */
export function adminTokenOperations(tokens: AdminTokens, address: OwnAddress): Operation[] {
  const common = { tag: "Administration tokens", access: "admin" } as const;
  return [
    operation({
      ...common,
      method: "POST",
      path: PATH,
      id: "createAdminToken",
      summary: "Create an administration token",
      description:
        "It acts as the admin who made it, until it expires, is revoked, or that login is no admin any more.",
      body: adminTokenRequestSchema,
      result: newAdminTokenSchema,
      successStatus: 201,
      async handle({ identity, client, body }) {
        const { token, record } = await tokens.create(callerOf(identity), client, body);
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
      id: "listAdminTokens",
      summary: "List the administration tokens of all admins",
      description: "Newest first. With `limit`, a `Link` header leads to the next page.",
      query: z.strictObject(pagingQuery),
      result: z.array(adminTokenSchema),
      successStatus: 200,
      async handle({ query }) {
        // Ids are UUIDv7: they order by time. Newest first, so the key counts backwards.
        const { items, headers } = pageOf(await tokens.list(), query, {
          url: `${address.baseUrl}${PATH}`,
          key: ({ id }) => id,
          descending: true,
        });
        return { status: 200, headers, body: items.map(adminTokenView) };
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: `${PATH}/{id}`,
      id: "getAdminToken",
      summary: "Show one administration token",
      result: adminTokenSchema,
      successStatus: 200,
      refusals: { 404: "No administration token has this id" },
      handle: async ({ parameters }) => ({
        status: 200,
        body: adminTokenView(await tokens.get(parameters["id"] ?? "")),
      }),
    }),
    operation({
      ...common,
      method: "DELETE",
      path: `${PATH}/{id}`,
      id: "revokeAdminToken",
      summary: "Revoke an administration token at once",
      query: mintedTokensQuery("Default keep"),
      successStatus: 204,
      refusals: { 404: "No administration token has this id" },
      async handle({ identity, client, parameters, query }) {
        await tokens.revoke(callerOf(identity), client, parameters["id"] ?? "", query.tokens);
        return { status: 204 };
      },
    }),
  ];
}

function adminTokenView(record: SessionRecord): z.output<typeof adminTokenSchema> {
  return {
    ...commonView(record),
    token_start: record.tokenStart,
    user_id: record.userId,
    created_ip: record.createdIp ?? null,
    last_used_at: record.lastSeenAt === undefined ? null : new Date(record.lastSeenAt).toISOString(),
  };
}

function commonView(record: SessionRecord): Omit<z.output<typeof newAdminTokenSchema>, "token"> {
  return {
    id: record.id,
    name: record.name ?? "",
    created_at: new Date(record.createdAt).toISOString(),
    expires_at: new Date(record.expiresAt).toISOString(),
  };
}
