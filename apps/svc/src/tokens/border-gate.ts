import type { Demand, GitAction } from "../scopes/required-permissions.ts";
import { BRAND } from "../brand.ts";
import type { Admission, Caller, CredentialGate, Refusal } from "./admission.ts";
import { gitDemand } from "../scopes/git-permissions.ts";
import { demandFault } from "../scopes/token-limits.ts";
import { credentialCandidates, credentialWords, presentsCredential } from "../credentials/presented.ts";
import { EVERYTHING } from "../scopes/scopes.ts";

/** What others' credentials may do here (spec/svc.md section 4.2). */
export interface BorderPolicy {
  /** Credentials that begin so are refused: `ghp_`, `github_pat_`. */
  readonly blockTokenPrefixes: readonly string[];
  /** Whether git without a credential is refused. */
  readonly blockAnonymousGit: boolean;
  /** Owners whose repositories they reach; empty: all. */
  readonly allowedOwners: readonly string[];
}

const BLOCKED = "Credentials of this kind are not taken here: mint a token of this service";

/** Holds requests without a token of ours to the border policy; the others are the inner gate's. */
export class BorderGate implements CredentialGate {
  readonly #inner: CredentialGate;
  readonly #policy: BorderPolicy;
  readonly #pushNeedsWorkflows: () => boolean;

  /** @param pushNeedsWorkflows `tokens.push_needs_workflows`, as it is now */
  constructor(inner: CredentialGate, policy: BorderPolicy, pushNeedsWorkflows: () => boolean) {
    this.#inner = inner;
    this.#policy = policy;
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
    const isStranger = principal.kind === "anonymous" || principal.kind === "foreign";
    // Code hosts serve public repositories to a header that says nothing, too.
    if (isStranger && this.#policy.blockAnonymousGit && !presentsCredential(authorization)) {
      const message = "This service does not serve git without a credential";
      return { ...refuse(401, message, { "WWW-Authenticate": `Basic realm="${BRAND.command}"` }), principal };
    }
    const demand = action && gitDemand(action, this.#pushNeedsWorkflows());
    return caller.permits(demand) ?? (await caller.forward("git"));
  }

  async authenticate(authorization: string | undefined, remoteAddress: string): Promise<Caller | Refusal> {
    const caller = await this.#inner.authenticate(authorization, remoteAddress);
    if (caller.kind === "refuse" || caller.limits !== undefined) return caller;
    const { allowedOwners } = this.#policy;
    const { principal } = caller;
    if (
      authorization !== undefined &&
      this.#policy.blockTokenPrefixes.length > 0 &&
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
      permits: (demand: Demand | undefined) => {
        const fault = demand === undefined ? "it names no repository" : demandFault(limits, demand);
        if (fault === undefined) return undefined;
        return {
          ...refuse(403, `Only repositories of ${allowedOwners.join(", ")} are reached here`),
          principal,
        };
      },
    };
  }

  carriesOwnToken(text: string): boolean {
    return this.#inner.carriesOwnToken(text);
  }

  strayFault(values: () => readonly string[]): Refusal | undefined {
    if (this.#policy.blockTokenPrefixes.length === 0) return this.#inner.strayFault(values);
    // Only where the value is the credential: a user agent's words may begin with anything.
    const found = values().some((value) =>
      [value.trim(), ...credentialCandidates(value)].some((text) => this.#blocks(text)),
    );
    return found ? refuse(403, BLOCKED) : this.#inner.strayFault(values);
  }

  #blocks(text: string): boolean {
    return this.#policy.blockTokenPrefixes.some((prefix) => text.startsWith(prefix));
  }
}

function refuse(
  status: Refusal["status"],
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Refusal {
  return { kind: "refuse", status, headers, message };
}
