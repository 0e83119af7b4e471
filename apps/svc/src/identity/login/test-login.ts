import { randomUUIDv7 } from "node:crypto";
import type { Clock, Secret } from "@devplat/base";
import type { Accounts } from "../accounts/accounts.ts";
import { managementSource } from "../audit-source.ts";
import type { AuditTrail } from "../../audit/audit-event.ts";
import type { Role, Store } from "../../storage/store.ts";
import type { Client } from "../client.ts";
import type { Sessions, StartedSession } from "./sessions.ts";

export interface TestLoginRequest {
  readonly username: string;
  readonly role: Role;
  /** The user's code-host token; default `dev.host_token`. */
  readonly hostToken: Secret | undefined;
}

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

  /** Begins a session. A code-host token, given or by default, becomes the user's stored credential. */
  async logIn({ username, role, hostToken }: TestLoginRequest, client: Client): Promise<StartedSession> {
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
