import type { Identity } from "../identity/principal.ts";
import { z } from "zod";
import type { Accounts } from "../identity/accounts/accounts.ts";
import { managementSource } from "../identity/audit-source.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import { SvcError } from "../errors.ts";
import type { Client } from "../identity/client.ts";
import type { MadeWith } from "../administration/made-with.ts";
import type { SessionEnd } from "../administration/session-end.ts";
import type { ListedSession, Sessions } from "../identity/login/sessions.ts";
import type { OwnAddress } from "../own-address.ts";
import type { SessionRecord } from "../storage/store.ts";
import { operation, type Operation } from "./operation.ts";
import { pageOf, pagingQuery } from "./paging.ts";

const time = z.iso.datetime();

const callerSchema = z
  .strictObject({
    username: z.string(),
    role: z.enum(["user", "admin"]),
    session_id: z.string(),
    account: z.enum(["connected", "expired", "none"]).meta({
      description: "The user's code-host account: its credential stands behind proxy tokens",
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
        "Tokens made with it that are good now, administration tokens and what those made included",
    }),
    current: z.boolean().meta({ description: "Whether it makes this request" }),
  })
  .meta({ id: "LoginSession" });

/** The query parameter that says what becomes of the tokens that were made with what ends. */
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

export interface SessionOperationsOptions {
  readonly sessions: Sessions;
  readonly sessionEnd: SessionEnd;
  readonly madeWith: Pick<MadeWith, "count">;
  readonly address: OwnAddress;
  readonly accounts: Accounts;
  readonly audit: AuditTrail;
}

/** Who one is, where one is signed in, and ending that. */
export function sessionOperations(options: SessionOperationsOptions): Operation[] {
  const { sessions, sessionEnd, madeWith, address, accounts, audit } = options;
  const common = { tag: "Login", access: "user" } as const;
  return [
    operation({
      ...common,
      method: "GET",
      path: "/api/session",
      id: "getCaller",
      summary: "Who makes this request",
      result: callerSchema,
      successStatus: 200,
      async handle({ identity }) {
        const { userId, login, role, sessionId } = required(identity);
        const account = await accounts.state(userId);
        return { status: 200, body: { username: login, role, session_id: sessionId, account } };
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
      successStatus: 200,
      async handle({ identity, query }) {
        const caller = required(identity);
        const everybody = query.all === "true";
        if (everybody && caller.role !== "admin") {
          throw new SvcError("forbidden", "Everybody's sessions are for admins");
        }
        // Ids are UUIDv7: they order by time. Newest first, so the key counts backwards.
        const { items, headers } = pageOf(await sessions.list(caller, everybody), query, {
          url: `${address.baseUrl}/api/sessions`,
          filter: { all: query.all },
          key: ({ record }) => record.id,
          descending: true,
        });
        const tokens = await madeWith.count(items.map(({ record }) => record.id));
        return {
          status: 200,
          headers,
          body: items.map((each) =>
            sessionView(each, { current: caller.sessionId, tokens: tokens.get(each.record.id) ?? 0 }),
          ),
        };
      },
    }),
    operation({
      ...common,
      method: "DELETE",
      path: "/api/sessions/{id}",
      id: "endSession",
      summary: "End a session at once",
      query: mintedTokensQuery("Default revoke for the session of a program, keep for a browser's"),
      successStatus: 204,
      refusals: { 404: "No session of yours has this id" },
      async handle({ identity, parameters, query, client }) {
        const caller = required(identity);
        if (parameters["id"] !== caller.sessionId) requirePerson(caller);
        await sessionEnd.end(caller, client, parameters["id"] ?? "", query.tokens);
        return { status: 204 };
      },
    }),
    operation({
      ...common,
      method: "DELETE",
      path: "/api/account",
      id: "disconnectAccount",
      summary: "Forget your code-host credential; your proxy tokens then open only what anybody may read",
      successStatus: 204,
      refusals: { 404: "No account is connected" },
      async handle({ identity, client }) {
        const caller = required(identity);
        requirePerson(caller);
        if (!(await accounts.disconnect(caller.userId))) {
          throw new SvcError("not_found", "No code-host account is connected");
        }
        recordDisconnect(audit, caller, client);
        return { status: 204 };
      },
    }),
  ];
}

export function recordDisconnect(audit: AuditTrail, caller: Identity, client: Client): void {
  audit.record({
    action: "account.disconnected",
    outcome: "allowed",
    target: caller.login,
    ...managementSource(caller, client),
  });
}

export function recordEnd(
  audit: AuditTrail,
  caller: Identity,
  ended: Pick<SessionRecord, "id">,
  client: Client,
): void {
  audit.record({
    action: "session.ended",
    outcome: "allowed",
    target: ended.id,
    ...managementSource(caller, client),
  });
}

function sessionView(
  { record, identity }: ListedSession,
  { current, tokens }: { readonly current: string; readonly tokens: number },
): z.output<typeof listedSessionSchema> {
  return {
    id: record.id,
    username: identity.login,
    role: identity.role,
    created_at: new Date(record.createdAt).toISOString(),
    expires_at: new Date(record.expiresAt).toISOString(),
    last_seen_at: record.lastSeenAt === undefined ? null : new Date(record.lastSeenAt).toISOString(),
    created_ip: record.createdIp ?? null,
    user_agent: record.userAgent ?? null,
    device: identity.device ?? null,
    tokens,
    current: record.id === current,
  };
}

/** A program that somebody approved has no say in where that person is signed in. @throws SvcError `forbidden` */
function requirePerson({ device }: Identity): void {
  if (device === undefined) return;
  throw new SvcError("forbidden", "The session of a program may not do this: sign in in a browser");
}

function required(identity: Identity | undefined): Identity {
  if (identity === undefined) throw new SvcError("forbidden", "A session is needed");
  return identity;
}
