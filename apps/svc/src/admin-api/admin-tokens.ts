import { z } from "zod";
import type { OwnAddress } from "../own-address.ts";
import type { SessionRecord } from "../storage/store.ts";
import type { AdminTokens } from "../administration/tokens/admin-tokens.ts";
import { pagingQuery } from "../administration/paging.ts";
import { adminTokenRequestSchema } from "../administration/tokens/token-input.ts";
import { isoTime, operation, type Operation } from "./operation.ts";
import { pageOf } from "./paging.ts";
import { createdToken, tokenStartField, tokenValueField } from "./token-fields.ts";
import { mintedTokensQuery } from "./sessions.ts";

const PATH = "/api/admin-tokens";
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
    token_start: tokenStartField,
    user_id: z.string().meta({ description: "The admin as whom it acts" }),
    created_ip: z.string().nullable(),
    last_used_at: time.nullable().meta({ description: "To the minute" }),
  })
  .meta({ id: "AdminToken" });
export const newAdminTokenSchema = z
  .strictObject({ token: tokenValueField, ...shown })
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
        "It acts as the admin who made it, until it expires, is revoked, or that login is not an admin any more.",
      body: adminTokenRequestSchema,
      result: newAdminTokenSchema,
      successStatus: 201,
      async handle({ actor, body }) {
        const { token, record } = await tokens.create(actor, body);
        return createdToken(`${address.baseUrl}${PATH}`, token, commonView(record));
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
      async handle({ actor, query }) {
        // Ids are UUIDv7: they order by time. Newest first, so the key counts backwards.
        const { items, headers } = pageOf(await tokens.list(actor), query, {
          url: `${address.baseUrl}${PATH}`,
          key: ({ id }) => id,
          descending: true,
        });
        return { headers, body: items.map(adminTokenView) };
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: `${PATH}/{id}`,
      id: "getAdminToken",
      summary: "Show one administration token",
      result: adminTokenSchema,
      refusals: { 404: "No administration token has this id" },
      handle: async ({ actor, id }) => ({
        body: adminTokenView(await tokens.get(actor, id)),
      }),
    }),
    operation({
      ...common,
      method: "DELETE",
      path: `${PATH}/{id}`,
      id: "revokeAdminToken",
      summary: "Revoke an administration token immediately",
      query: mintedTokensQuery("Default keep"),
      refusals: { 404: "No administration token has this id" },
      handle: async ({ actor, id, query }) => tokens.revoke(actor, id, query.tokens),
    }),
  ];
}

function adminTokenView(record: SessionRecord): z.output<typeof adminTokenSchema> {
  return {
    ...commonView(record),
    token_start: record.tokenStart,
    user_id: record.userId,
    created_ip: record.createdIp ?? null,
    last_used_at: isoTime(record.lastSeenAt),
  };
}

function commonView(record: SessionRecord): Omit<z.output<typeof newAdminTokenSchema>, "token"> {
  return {
    id: record.id,
    name: record.name ?? "",
    created_at: isoTime(record.createdAt),
    expires_at: isoTime(record.expiresAt),
  };
}
