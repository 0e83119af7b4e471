import type { RequiredPermissions, RequiredPermission, TokenLimits } from "./required-permissions.ts";
import { NAME_FORM, foldCase } from "../repository-name.ts";
import { EVERYTHING, allows } from "./scopes.ts";

/** Whether a token is for everything, also for requests that this service does not know. */
export function isUnlimited({ repositories, scopes }: TokenLimits): boolean {
  return repositories.includes(EVERYTHING) && scopes[EVERYTHING] === "write";
}

/** Whether a token is for the repository. */
export function isListed({ repositories }: TokenLimits, wanted: string): boolean {
  const folded = foldCase(wanted);
  return repositories.some((each) => {
    if (each === EVERYTHING) return true;
    // `owner/*`, from the border policy.
    if (each.endsWith(`/${EVERYTHING}`))
      return folded.startsWith(foldCase(each.slice(0, -EVERYTHING.length)));
    return foldCase(each) === folded;
  });
}

/** `issues:write`, or `issues:read or pull_requests:read` */
export function permissionText({ resource, or, level }: RequiredPermission): string {
  return or === undefined ? `${resource}:${level}` : `${resource}:${level} or ${or}:${level}`;
}

/** The reason why a token with these limits lacks the required permissions, for its user; undefined: it has them. */
export function permissionFault(limits: TokenLimits, required: RequiredPermissions): string | undefined {
  for (const wanted of required.repositories) {
    // The code host may read such a name as another repository.
    const [owner = "", name = "", ...rest] = wanted.split("/");
    if (!NAME_FORM.test(owner) || !NAME_FORM.test(name) || rest.length > 0) {
      return "Tokens of this service do not open repositories of such a name";
    }
    if (!isListed(limits, wanted)) return `The token is not for ${wanted}`;
  }
  const anyRepository = required.anyRepository === true || limits.repositories.includes(EVERYTHING);
  if (required.repositories.length === 0 && !anyRepository) {
    return "The token is for single repositories, and this request concerns no single repository";
  }
  const lacking = required.needs.filter(
    ({ resource, or = resource, level }) =>
      !allows(limits.scopes, resource, level) && !allows(limits.scopes, or, level),
  );
  if (lacking.length === 0) return undefined;
  const of = required.repositories.length === 0 ? "" : ` for ${required.repositories.join(", ")}`;
  return `The token lacks the scope ${lacking.map(permissionText).join(" and ")}${of}`;
}
