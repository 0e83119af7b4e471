import type { Clock, Logger } from "@devplat/base";
import { BRAND } from "../brand.ts";
import type { OwnAddress } from "../own-address.ts";
import { NAME_FORM, foldCase } from "../repository-name.ts";
import type { Admission, CredentialGate, GitAction } from "./admission.ts";
import { holdsTokenPrefix, isWellFormed } from "./format.ts";
import { presentedCredential } from "./presented.ts";
import { EVERYTHING, allows } from "./scopes.ts";
import type { KnownToken, TokenLookup } from "./token-lookup.ts";
import type { TokenUses } from "./token-uses.ts";

export interface TokenGateOptions {
  readonly lookup: TokenLookup;
  readonly uses: TokenUses;
  readonly address: OwnAddress;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Checks our tokens on git routes and swaps them for the stored credential. */
export class TokenGate implements CredentialGate {
  readonly #lookup: TokenLookup;
  readonly #uses: TokenUses;
  readonly #address: OwnAddress;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor({ lookup, uses, address, clock, logger }: TokenGateOptions) {
    this.#lookup = lookup;
    this.#uses = uses;
    this.#address = address;
    this.#clock = clock;
    this.#logger = logger;
  }

  async admit(
    authorization: string | undefined,
    action: GitAction | undefined,
    remoteAddress: string,
  ): Promise<Admission> {
    const presented = presentedCredential(authorization);
    if (presented.kind === "none") {
      return { kind: "forward", authorization: undefined, principal: nobody("anonymous") };
    }
    if (presented.kind === "foreign") {
      return { kind: "forward", authorization, principal: nobody("foreign") };
    }
    if (presented.kind === "garbled") return unauthorized("The credential is not a token of this service");
    if (presented.tokenKind === "session") {
      return refuse(403, "Session and administration tokens do not open repositories: mint a proxy token");
    }
    return this.#admitToken(presented.token, action, remoteAddress);
  }

  carriesOwnToken(text: string): boolean {
    return holdsTokenPrefix(text);
  }

  async #admitToken(text: string, action: GitAction | undefined, remoteAddress: string): Promise<Admission> {
    let token: KnownToken | undefined;
    try {
      token = isWellFormed(text) ? await this.#lookup.find(text) : undefined;
    } catch (error) {
      this.#logger.error({ err: error }, "a token could not be looked up");
      return refuse(503, "The token could not be checked; try again shortly", { "Retry-After": "5" });
    }
    if (token === undefined) return unauthorized("The token is not known here");
    const { record } = token;
    if (record.revokedAt !== undefined) return unauthorized("The token was revoked");
    if (record.expiresAt !== undefined && record.expiresAt <= this.#clock.now()) {
      return unauthorized(`The token expired at ${new Date(record.expiresAt).toISOString()}`);
    }
    if (record.type !== "proxy") return refuse(403, "Agent tokens need a registered app, and none is");
    if (token.addresses !== undefined && !token.addresses.has(remoteAddress)) {
      return refuse(403, "The token may not be used from this address");
    }
    const fault = scopeFault(token, action);
    if (fault !== undefined) return refuse(403, fault);
    this.#uses.count(record.id, remoteAddress);
    return {
      kind: "forward",
      authorization: token.authorization?.reveal(),
      principal: { kind: "proxy_token", login: token.login, tokenId: record.id },
      whenUnauthorized:
        (token.authorization === undefined
          ? `No code-host account of ${token.login} is connected here, and the code host wants one`
          : `The code host does not take the stored credential of ${token.login} any more`) +
        `: connect the account again at ${this.#address.baseUrl}/ui`,
    };
  }
}

function scopeFault({ record }: KnownToken, action: GitAction | undefined): string | undefined {
  // Fail closed: what is not understood is not within any scope.
  if (action === undefined) return "Tokens of this service do not open this address";
  const wanted = `${action.owner}/${action.name}`;
  // Who knows which repository the code host takes such a name for?
  if (!NAME_FORM.test(action.owner) || !NAME_FORM.test(action.name)) {
    return "Tokens of this service do not open repositories of such a name";
  }
  const listed = record.repositories.some(
    (each) => each === EVERYTHING || foldCase(each) === foldCase(wanted),
  );
  if (!listed) return `The token is not for ${wanted}`;
  if (allows(record.scopes, action.resource, action.level)) return undefined;
  return `The token lacks the scope ${action.resource}:${action.level} for ${wanted}`;
}

function nobody(kind: "anonymous" | "foreign"): Extract<Admission, { kind: "forward" }>["principal"] {
  return { kind, login: undefined, tokenId: undefined };
}

/** 401, so that git asks its credential helpers again and drops what they gave. */
function unauthorized(message: string): Admission {
  return refuse(401, message, { "WWW-Authenticate": `Basic realm="${BRAND.command}"` });
}

function refuse(
  status: 401 | 403 | 503,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Admission {
  return { kind: "refuse", status, headers, message };
}
