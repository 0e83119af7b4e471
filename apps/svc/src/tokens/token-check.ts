import type { Principal } from "../identity/principal.ts";
import type { Clock, Logger, Secret } from "@devplat/base";
import type { HostAccounts } from "../code-host/host-account.ts";
import type { InstallationCredentials } from "../identity/apps/installation-credentials.ts";
import type { CodeHost } from "../code-host/code-host.ts";
import type { AllowedUsers } from "../identity/login/allowed-users.ts";
import type { OwnAddress } from "../own-address.ts";
import {
  refuse,
  unauthorized,
  type Admission,
  type Caller,
  type CredentialForm,
  type CredentialCheck,
  type Refusal,
} from "./admission.ts";
import { SvcError } from "../errors.ts";
import { isWellFormed } from "../credentials/token-format.ts";
import { permissionFault, isUnlimited } from "../scopes/token-limits.ts";
import { presentedCredential } from "../credentials/presented.ts";
import type { KnownToken, TokenLookup } from "./token-lookup.ts";
import type { TokenRate } from "./token-rate.ts";
import type { TokenUses } from "./token-uses.ts";

/** Seconds after which a client may try again while the database or the code host is away. */
const RETRY_SECONDS = "5";

export interface TokenCheckParts {
  readonly lookup: TokenLookup;
  readonly uses: TokenUses;
  readonly rate: TokenRate;
  readonly accounts: HostAccounts;
  readonly allowed: Pick<AllowedUsers, "isStillAllowed">;
  /** Undefined: no app can be registered, and agent tokens are refused. */
  readonly installations: InstallationCredentials | undefined;
  readonly codeHost: Pick<CodeHost, "gitAuthorization" | "apiAuthorization">;
  readonly address: OwnAddress;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Checks tokens of this service and replaces them by the stored credential. */
export class TokenCheck implements Pick<CredentialCheck, "authenticate"> {
  readonly #parts: TokenCheckParts;

  constructor(parts: TokenCheckParts) {
    this.#parts = parts;
  }

  async authenticate(authorization: string | undefined, remoteAddress: string): Promise<Caller | Refusal> {
    const presented = presentedCredential(authorization);
    if (presented.kind === "none") return externalCaller("anonymous", undefined);
    if (presented.kind === "foreign") return externalCaller("foreign", authorization);
    if (presented.kind === "garbled") return unauthorized("The credential is not a token of this service");
    if (presented.tokenKind === "session") {
      return refuse(403, "Session and administration tokens do not open repositories: create a proxy token");
    }
    return this.#known(presented.token, remoteAddress);
  }

  async #known(text: string, remoteAddress: string): Promise<Caller | Refusal> {
    const { lookup, clock, rate } = this.#parts;
    let token: KnownToken | undefined;
    try {
      token = isWellFormed(text) ? await lookup.find(text) : undefined;
    } catch (error) {
      return this.#unavailable(error);
    }
    if (token === undefined) return unauthorized("The token is not known here");
    const { record } = token;
    const principal: Principal = {
      kind: record.type === "agent" ? "agent_token" : "proxy_token",
      login: token.login,
      tokenId: record.id,
    };
    if (record.revokedAt !== undefined) return { ...unauthorized("The token was revoked"), principal };
    if (record.expiresAt !== undefined && record.expiresAt <= clock.now()) {
      const at = new Date(record.expiresAt).toISOString();
      return { ...unauthorized(`The token expired at ${at}`), principal };
    }
    if (token.addresses !== undefined && !token.addresses.has(remoteAddress)) {
      return { ...refuse(403, "The token may not be used from this address"), principal };
    }
    const waitSeconds = await rate.take(record.id, record.requestsPerMinute);
    if (waitSeconds !== undefined) {
      const message = "The token makes more requests a minute than it may; try again later";
      return { ...refuse(429, message, { "Retry-After": String(waitSeconds) }), principal };
    }
    // An agent token acts for the app, not for the user who made it.
    if (record.type === "proxy") {
      try {
        const user = { userId: record.userId, login: token.login };
        if (!(await this.#parts.allowed.isStillAllowed(user))) {
          const message = `The account of ${token.login} may not use this service any more; sign in again if it may`;
          return { ...refuse(403, message), principal };
        }
      } catch (error) {
        return this.#unavailable(error);
      }
    }
    return this.#caller(token, principal, remoteAddress);
  }

  #caller(token: KnownToken, principal: Principal, remoteAddress: string): Caller {
    const { record } = token;
    return {
      kind: "caller",
      principal,
      limits: record,
      permits: (required) => {
        if (isUnlimited(record) && required === undefined) return undefined;
        // Fail closed: a request that is not understood is in no scope.
        const fault =
          required === undefined
            ? "Tokens of this service do not open this address"
            : permissionFault(record, required);
        return fault === undefined ? undefined : { ...refuse(403, fault), principal };
      },
      forward: async (form) => {
        try {
          const admission =
            record.type === "agent"
              ? await this.#installation(token, principal, form)
              : await this.#account(token, principal, form);
          if (admission.kind === "forward") this.#parts.uses.count(record.id, remoteAddress);
          return admission;
        } catch (error) {
          return this.#unavailable(error);
        }
      },
    };
  }

  /** The credential of the user who made the token. */
  async #account(token: KnownToken, principal: Principal, form: CredentialForm): Promise<Admission> {
    const { accounts, address, logger } = this.#parts;
    const { userId } = token.record;
    const used = await accounts.accessToken(userId);
    const connect = `connect the account again at ${address.baseUrl}/ui`;
    if (used === undefined) {
      const whenUnauthorized = `No code-host account of ${token.login} is connected here, and the code host wants one: ${connect}`;
      return { kind: "forward", authorization: undefined, principal, whenUnauthorized };
    }
    return {
      kind: "forward",
      authorization: this.#authorization(used, form),
      principal,
      whenUnauthorized: `The code host does not take the stored credential of ${token.login} any more: ${connect}`,
      renew: async () => {
        try {
          const renewed = await accounts.renewAfterRefusal(userId, used);
          return renewed && this.#authorization(renewed, form);
        } catch (error) {
          logger.error({ err: error }, "a code-host credential could not be renewed");
          return undefined;
        }
      },
    };
  }

  /** The installation token of the app behind an agent token. */
  async #installation(token: KnownToken, principal: Principal, form: CredentialForm): Promise<Admission> {
    const outcome = await this.#parts.installations?.forToken(token.record);
    if (outcome === undefined) {
      return { ...refuse(403, "Agent tokens need a registered app, and none is"), principal };
    }
    if (outcome.kind === "refused") return { ...refuse(403, outcome.message), principal };
    if (outcome.kind === "unavailable") {
      return { ...refuse(503, outcome.message, { "Retry-After": RETRY_SECONDS }), principal };
    }
    return {
      kind: "forward",
      authorization: this.#authorization(outcome.token, form),
      principal,
      whenUnauthorized:
        "The code host does not take the installation token behind this agent token: an admin should look at the app",
    };
  }

  #authorization(token: Secret, form: CredentialForm): string {
    const { codeHost } = this.#parts;
    return (form === "git" ? codeHost.gitAuthorization(token) : codeHost.apiAuthorization(token)).reveal();
  }

  #unavailable(error: unknown): Refusal {
    this.#parts.logger.error({ err: error }, "a token could not be looked up");
    const isDatabase = error instanceof SvcError && error.code === "database_unavailable";
    const cause = isDatabase ? "The database of this service does not answer: the" : "The";
    return refuse(503, `${cause} token could not be checked; try again shortly`, {
      "Retry-After": RETRY_SECONDS,
    });
  }
}

/** A caller without a token of this service: the code host alone decides. */
function externalCaller(kind: "anonymous" | "foreign", authorization: string | undefined): Caller {
  const principal: Principal = { kind, login: undefined, tokenId: undefined };
  return {
    kind: "caller",
    principal,
    limits: undefined,
    permits: () => undefined,
    forward: async () => ({ kind: "forward", authorization, principal }),
  };
}
