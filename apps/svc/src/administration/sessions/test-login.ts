import { randomUUIDv7 } from "node:crypto";
import { Secret, type Clock } from "@devplat/base";
import { z } from "zod";
import type { Accounts } from "../../identity/accounts/accounts.ts";
import { managementSource } from "../../identity/audit-source.ts";
import type { AuditTrail } from "../../audit/audit-event.ts";
import type { Store } from "../../storage/store.ts";
import type { Client } from "../../identity/client.ts";
import type { Sessions, StartedSession } from "../../identity/login/sessions.ts";
import { validateBody } from "../../http/request/validation.ts";

/** Any login is accepted that a log line and a page can show. */
const usernameSchema = z
  .string()
  .min(1)
  .max(100)
  .regex(/^(?=.*\S)[^\p{Cc}\p{Zl}\p{Zp}]+$/u, "must be a name without control characters");

export const testLoginSchema = z
  .strictObject({
    username: usernameSchema.meta({ example: "alice" }),
    role: z.enum(["user", "admin"]).optional().meta({ description: "Default user" }),
    host_token: z.string().min(1).max(4096).optional().meta({
      description: "Code-host token that the user's proxy tokens use; default dev.host_token",
    }),
  })
  .meta({ id: "TestLogin" });

/** Development mode's login: any user name, any role, no password. It is built only in development mode. */
export class TestLogin {
  readonly #store: Store;
  readonly #sessions: Sessions;
  readonly #accounts: Pick<Accounts, "connect">;
  readonly #audit: AuditTrail;
  readonly #clock: Clock;
  readonly #defaultHostToken: Secret | undefined;

  constructor(options: {
    readonly store: Store;
    readonly sessions: Sessions;
    readonly accounts: Pick<Accounts, "connect">;
    readonly audit: AuditTrail;
    readonly clock: Clock;
    readonly defaultHostToken: Secret | undefined;
  }) {
    this.#store = options.store;
    this.#sessions = options.sessions;
    this.#accounts = options.accounts;
    this.#audit = options.audit;
    this.#clock = options.clock;
    this.#defaultHostToken = options.defaultHostToken;
  }

  /**
   * Begins a session. A code-host token, given or by default, becomes the user's stored credential.
   *
   * @throws SvcError `invalid_fields`; ProblemError
   */
  async logIn(input: unknown, client: Client): Promise<StartedSession> {
    const { username: given, role = "user", host_token } = validateBody(testLoginSchema, input);
    const username = given.trim();
    const hostToken = host_token === undefined ? undefined : new Secret(host_token);
    const user = await this.#store.users.ensure(username, randomUUIDv7(), this.#clock.now());
    const started = await this.#sessions.start(user, role, client);
    const accessToken = hostToken ?? this.#defaultHostToken;
    if (accessToken !== undefined) {
      const credential = { accessToken, refreshToken: undefined, expiresAt: undefined };
      await this.#accounts.connect(started.identity.userId, credential);
    }
    this.#audit.record({
      action: "login.succeeded",
      outcome: "allowed",
      ...managementSource(started.identity, client),
      details: { method: "test_login", role: started.record.role },
    });
    return started;
  }
}
