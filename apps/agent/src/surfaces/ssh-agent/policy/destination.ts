import { matchesHost, matchesPattern } from "@devplat/ssh-protocol";

/** The account that a key is used for, as far as it is known. */
export type Account =
  /** The login request names it. The key signs the name. */
  | { readonly kind: "named"; readonly user: string }
  /** It is not known yet: a pattern matches if one account matches it. */
  | { readonly kind: "any" }
  /** It will never be known: a pattern matches only if every account matches it. */
  | { readonly kind: "every" };

/** A pattern of `hosts`: `[!][USER@]HOST`. */
interface DestinationPattern {
  readonly isRejecting: boolean;
  /** Undefined: every user. */
  readonly user: string | undefined;
  readonly host: string;
}

/**
 * Whether a login to an account of a host is permitted by patterns in the form `[!][USER@]HOST`, where USER and HOST may have
 * wildcards. Case counts in user names, as in OpenSSH. A host without a name matches nothing, and a pattern with `!` that
 * matches one of the names rejects the host.
 */
export function isDestination(
  names: readonly string[],
  account: Account,
  patterns: readonly string[],
): boolean {
  const parsed = patterns.map(parse);
  const matches = ({ isRejecting, user, host }: DestinationPattern): boolean =>
    isUserMatch(user, account, isRejecting) && names.some((name) => matchesHost(name, [host]));
  return (
    parsed.some((pattern) => !pattern.isRejecting && matches(pattern)) &&
    !parsed.some((pattern) => pattern.isRejecting && matches(pattern))
  );
}

/** Host names that are spelled out in patterns of `hosts` and `via`. */
export function literalNames(patterns: readonly string[]): string[] {
  return patterns
    .map(parse)
    .filter(({ isRejecting, host }) => !isRejecting && !/[*?]/.test(host))
    .map(({ host }) => host.toLowerCase());
}

/** A pattern with a user name permits any of its users while the account is open, and none if the account is never known. */
function isUserMatch(pattern: string | undefined, account: Account, isRejecting: boolean): boolean {
  if (pattern === undefined) return true;
  if (account.kind === "named") return matchesPattern(account.user, pattern);
  return (account.kind === "any") !== isRejecting;
}

/** As for `ssh-add -h`, the last `@` ends the name of the user. */
function parse(pattern: string): DestinationPattern {
  const isRejecting = pattern.startsWith("!");
  const text = isRejecting ? pattern.slice(1) : pattern;
  const at = text.lastIndexOf("@");
  return { isRejecting, user: at === -1 ? undefined : text.slice(0, at), host: text.slice(at + 1) };
}
