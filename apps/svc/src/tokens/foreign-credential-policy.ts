import type { RequiredPermissions, GitAction } from "../scopes/required-permissions.ts";
import {
  refuse,
  unauthorized,
  type Admission,
  type Caller,
  type CredentialCheck,
  type Refusal,
} from "./admission.ts";
import { holdsTokenPrefix } from "../credentials/token-format.ts";
import { gitPermissions } from "../scopes/git-permissions.ts";
import { permissionFault } from "../scopes/token-limits.ts";
import { credentialCandidates, credentialWords, presentsCredential } from "../credentials/presented.ts";
import { EVERYTHING } from "../scopes/scopes.ts";

/** Rules for credentials that this service did not issue (spec/svc.md section 4.2). */
export interface ForeignCredentialRules {
  /** Credentials with these prefixes are refused: `ghp_`, `github_pat_`. */
  readonly blockTokenPrefixes: readonly string[];
  /** Whether git without a credential is refused. */
  readonly blockAnonymousGit: boolean;
  /** Owners whose repositories they reach; empty: all. */
  readonly allowedOwners: readonly string[];
}

const BLOCKED = "Credentials of this kind are not accepted here: create a token of this service";

/** Applies the rules to requests without a token of this service. The check of tokens decides on the others. */
export class ForeignCredentialPolicy implements CredentialCheck {
  readonly #tokens: Pick<CredentialCheck, "authenticate">;
  readonly #rules: ForeignCredentialRules;
  readonly #pushNeedsWorkflows: () => boolean;

  /** @param pushNeedsWorkflows `tokens.push_needs_workflows`, as it is now */
  constructor(
    tokens: Pick<CredentialCheck, "authenticate">,
    rules: ForeignCredentialRules,
    pushNeedsWorkflows: () => boolean,
  ) {
    this.#tokens = tokens;
    this.#rules = rules;
    this.#pushNeedsWorkflows = pushNeedsWorkflows;
  }

  async admit(
    authorization: string | undefined,
    action: GitAction | undefined,
    remoteAddress: string,
  ): Promise<Admission> {
    const caller = await this.authenticate(authorization, remoteAddress);
    if (caller.kind === "refuse") return caller;
    const { principal } = caller;
    const isExternal = principal.kind === "anonymous" || principal.kind === "foreign";
    // Code hosts serve public repositories also to an empty header.
    if (isExternal && this.#rules.blockAnonymousGit && !presentsCredential(authorization)) {
      const message = "This service does not serve git without a credential";
      return { ...unauthorized(message), principal };
    }
    const required = action && gitPermissions(action, this.#pushNeedsWorkflows());
    return caller.permits(required) ?? (await caller.forward("git"));
  }

  async authenticate(authorization: string | undefined, remoteAddress: string): Promise<Caller | Refusal> {
    const caller = await this.#tokens.authenticate(authorization, remoteAddress);
    if (caller.kind === "refuse" || caller.limits !== undefined) return caller;
    const { allowedOwners } = this.#rules;
    const { principal } = caller;
    if (
      authorization !== undefined &&
      this.#rules.blockTokenPrefixes.length > 0 &&
      credentialWords(authorization).some((word) => this.#blocks(word))
    ) {
      return { ...refuse(403, BLOCKED), principal };
    }
    if (allowedOwners.length === 0) return caller;
    const limits = {
      repositories: allowedOwners.map((owner) => `${owner}/${EVERYTHING}`),
      scopes: { [EVERYTHING]: "write" } as const,
    };
    return {
      ...caller,
      limits,
      permits: (required: RequiredPermissions | undefined) => {
        const fault = required === undefined ? "it names no repository" : permissionFault(limits, required);
        if (fault === undefined) return undefined;
        return {
          ...refuse(403, `Only repositories of ${allowedOwners.join(", ")} can be reached here`),
          principal,
        };
      },
    };
  }

  carriesOwnToken(text: string): boolean {
    return holdsTokenPrefix(text);
  }

  foreignCredentialRefusal(values: () => readonly string[]): Refusal | undefined {
    if (this.#rules.blockTokenPrefixes.length === 0) return undefined;
    // Only a value that is a credential: the words of a user agent can begin with anything.
    const found = values().some((value) =>
      [value.trim(), ...credentialCandidates(value)].some((text) => this.#blocks(text)),
    );
    return found ? refuse(403, BLOCKED) : undefined;
  }

  #blocks(text: string): boolean {
    return this.#rules.blockTokenPrefixes.some((prefix) => text.startsWith(prefix));
  }
}
