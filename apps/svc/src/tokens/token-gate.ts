import type { Principal } from "../identity/principal.ts";
import type { GitAction } from "../scopes/required-permissions.ts";
import type { Clock, Logger, Secret } from "@devplat/base";
import type { HostAccounts } from "../code-host/host-account.ts";
import type { InstallationCredentials } from "../identity/apps/installation-credentials.ts";
import { BRAND } from "../brand.ts";
import type { CodeHost } from "../code-host/code-host.ts";
import type { AllowedUsers } from "../identity/login/allowed-users.ts";
import type { OwnAddress } from "../own-address.ts";
import type { Admission, Caller, CredentialForm, CredentialGate, Refusal } from "./admission.ts";
import { SvcError } from "../errors.ts";
import { holdsTokenPrefix, isWellFormed } from "../credentials/token-format.ts";
import { demandFault, isUnlimited } from "../scopes/token-limits.ts";
import { presentedCredential } from "../credentials/presented.ts";
import { gitDemand } from "../scopes/git-permissions.ts";
import type { KnownToken, TokenLookup } from "./token-lookup.ts";
import type { TokenRate } from "./token-rate.ts";
import type { TokenUses } from "./token-uses.ts";

/** Seconds after which a client may try again while the database or the code host is away. */
const RETRY_SECONDS = "5";

export interface TokenGateOptions {
  readonly lookup: TokenLookup;
  readonly uses: TokenUses;
  readonly rate: TokenRate;
  readonly accounts: HostAccounts;
  readonly allowed: Pick<AllowedUsers, "isStillAllowed">;
  /** Undefined: no app can be registered, and agent tokens open nothing. */
  readonly installations: InstallationCredentials | undefined;
  readonly codeHost: Pick<CodeHost, "gitAuthorization" | "apiAuthorization">;
  readonly address: OwnAddress;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Checks our tokens and swaps them for the credential that stands behind them. */
export class TokenGate implements CredentialGate {
  readonly #options: TokenGateOptions;

  constructor(options: TokenGateOptions) {
    this.#options = options;
  }

  async admit(
    authorization: string | undefined,
    action: GitAction | undefined,
    remoteAddress: string,
  ): Promise<Admission> {
    const caller = await this.authenticate(authorization, remoteAddress);
    if (caller.kind === "refuse") return caller;
    return caller.permits(action && gitDemand(action, false)) ?? (await caller.forward("git"));
  }

  async authenticate(authorization: string | undefined, remoteAddress: string): Promise<Caller | Refusal> {
    const presented = presentedCredential(authorization);
    if (presented.kind === "none") return stranger("anonymous", undefined);
    if (presented.kind === "foreign") return stranger("foreign", authorization);
    if (presented.kind === "garbled") return unauthorized("The credential is not a token of this service");
    if (presented.tokenKind === "session") {
      return refuse(403, "Session and administration tokens do not open repositories: mint a proxy token");
    }
    return this.#known(presented.token, remoteAddress);
  }

  carriesOwnToken(text: string): boolean {
    return holdsTokenPrefix(text);
  }

  strayFault(): undefined {
    return undefined;
  }

  async #known(text: string, remoteAddress: string): Promise<Caller | Refusal> {
    const { lookup, clock, rate } = this.#options;
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
    // An agent token is the app's, whoever made it.
    if (record.type === "proxy") {
      try {
        const user = { userId: record.userId, login: token.login };
        if (!(await this.#options.allowed.isStillAllowed(user))) {
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
      permits: (demand) => {
        if (isUnlimited(record) && demand === undefined) return undefined;
        // Fail closed: what is not understood is not within any scope.
        const fault =
          demand === undefined
            ? "Tokens of this service do not open this address"
            : demandFault(record, demand);
        return fault === undefined ? undefined : { ...refuse(403, fault), principal };
      },
      forward: async (form) => {
        try {
          const admission =
            record.type === "agent"
              ? await this.#installation(token, principal, form)
              : await this.#account(token, principal, form);
          if (admission.kind === "forward") this.#options.uses.count(record.id, remoteAddress);
          return admission;
        } catch (error) {
          return this.#unavailable(error);
        }
      },
    };
  }

  /** The credential of the user who minted the token. */
  async #account(token: KnownToken, principal: Principal, form: CredentialForm): Promise<Admission> {
    const { accounts, address, logger } = this.#options;
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
    const outcome = await this.#options.installations?.forToken(token.record);
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
    const { codeHost } = this.#options;
    return (form === "git" ? codeHost.gitAuthorization(token) : codeHost.apiAuthorization(token)).reveal();
  }

  #unavailable(error: unknown): Refusal {
    this.#options.logger.error({ err: error }, "a token could not be looked up");
    const isDatabase = error instanceof SvcError && error.code === "database_unavailable";
    const cause = isDatabase ? "The database of this service does not answer: the" : "The";
    return refuse(503, `${cause} token could not be checked; try again shortly`, {
      "Retry-After": RETRY_SECONDS,
    });
  }
}

/** Somebody without a token of ours: the code host alone judges. */
function stranger(kind: "anonymous" | "foreign", authorization: string | undefined): Caller {
  const principal: Principal = { kind, login: undefined, tokenId: undefined };
  return {
    kind: "caller",
    principal,
    limits: undefined,
    permits: () => undefined,
    forward: async () => ({ kind: "forward", authorization, principal }),
  };
}

/** 401, so that git asks its credential helpers again and drops what they gave. */
function unauthorized(message: string): Refusal {
  return refuse(401, message, { "WWW-Authenticate": `Basic realm="${BRAND.command}"` });
}

function refuse(
  status: Refusal["status"],
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Refusal {
  return { kind: "refuse", status, headers, message };
}
