import { z } from "zod";
import { pagingQuery } from "../administration/paging.ts";
import type { SessionUseCases } from "../administration/sessions/sessions.ts";
import { SvcError } from "../errors.ts";
import type { ListedSession } from "../identity/login/sessions.ts";
import type { OwnAddress } from "../own-address.ts";
import { isoTime, operation, type Operation } from "./operation.ts";
import { pageOf } from "./paging.ts";

const time = z.iso.datetime();

const callerSchema = z
  .strictObject({
    username: z.string(),
    role: z.enum(["user", "admin"]),
    session_id: z.string(),
    account: z.enum(["connected", "expired", "none"]).meta({
      description: "The user's code-host account: proxy tokens use its credential",
    }),
  })
  .meta({ id: "Caller" });

const listedSessionSchema = z
  .strictObject({
    id: z.string(),
    username: z.string(),
    role: z.enum(["user", "admin"]),
    created_at: time,
    expires_at: time,
    last_seen_at: time.nullable(),
    created_ip: z.string().nullable(),
    user_agent: z.string().nullable(),
    device: z
      .string()
      .nullable()
      .meta({ description: "The program that was approved by a code; null: a browser" }),
    tokens: z.int().meta({
      description:
        "Valid tokens that were made with it, administration tokens and the tokens made with those included",
    }),
    current: z.boolean().meta({ description: "Whether it makes this request" }),
  })
  .meta({ id: "LoginSession" });

/** The query parameter for the action on the tokens that were made with the ended session or token. */
export function mintedTokensQuery(fallback: string) {
  return z.strictObject({
    tokens: z
      .enum(["revoke", "keep"])
      .optional()
      .meta({
        description: `What becomes of the tokens that were made with it. ${fallback}`,
      }),
  });
}

/** Who one is, where one is signed in, and ending that. */
export function sessionOperations(sessions: SessionUseCases, address: OwnAddress): Operation[] {
  const common = { tag: "Login", access: "user" } as const;
  return [
    operation({
      ...common,
      method: "GET",
      path: "/api/session",
      id: "getCaller",
      summary: "Who makes this request",
      result: callerSchema,
      async handle({ actor }) {
        const account = await sessions.accountState(actor);
        const { login, role, sessionId } = actor;
        return { body: { username: login, role, session_id: sessionId, account } };
      },
    }),
    operation({
      ...common,
      method: "GET",
      path: "/api/sessions",
      id: "listSessions",
      summary: "Where you are signed in; an admin may ask for everybody's",
      description: "Newest first. With `limit`, a `Link` header leads to the next page.",
      query: z.strictObject({
        ...pagingQuery,
        all: z.enum(["true", "false"]).optional().meta({ description: "true: of all users (admin)" }),
      }),
      result: z.array(listedSessionSchema),
      async handle({ actor, query }) {
        // Ids are UUIDv7: they order by time. Newest first, so the key counts backwards.
        const { items, headers } = pageOf(await sessions.list(actor, query.all === "true"), query, {
          url: `${address.baseUrl}/api/sessions`,
          filter: { all: query.all },
          key: ({ record }) => record.id,
          descending: true,
        });
        const tokens = await sessions.tokenCounts(items);
        return {
          headers,
          body: items.map((each) =>
            sessionView(each, { current: actor.sessionId, tokens: tokens.get(each.record.id) ?? 0 }),
          ),
        };
      },
    }),
    operation({
      ...common,
      method: "DELETE",
      path: "/api/sessions/{id}",
      id: "endSession",
      summary: "End a session immediately",
      query: mintedTokensQuery("Default revoke for the session of a program, keep for a browser's"),
      refusals: { 404: "No session of yours has this id" },
      handle: async ({ actor, id, query }) => void (await sessions.end(actor, id, query.tokens)),
    }),
    operation({
      ...common,
      method: "DELETE",
      path: "/api/account",
      id: "disconnectAccount",
      summary: "Forget your code-host credential; your proxy tokens then open only what anybody may read",
      refusals: { 404: "No account is connected" },
      async handle({ actor }) {
        if (await sessions.disconnectAccount(actor)) return;
        throw new SvcError("not_found", "No code-host account is connected");
      },
    }),
    operation({
      ...common,
      method: "POST",
      path: "/auth/logout",
      id: "logout",
      summary: "End the session that makes this request",
      handle: async ({ actor }) => sessions.logOut(actor),
    }),
  ];
}

function sessionView(
  { record, identity }: ListedSession,
  { current, tokens }: { readonly current: string; readonly tokens: number },
): z.output<typeof listedSessionSchema> {
  return {
    id: record.id,
    username: identity.login,
    role: identity.role,
    created_at: isoTime(record.createdAt),
    expires_at: isoTime(record.expiresAt),
    last_seen_at: isoTime(record.lastSeenAt),
    created_ip: record.createdIp ?? null,
    user_agent: record.userAgent ?? null,
    device: identity.device ?? null,
    tokens,
    current: record.id === current,
  };
}
