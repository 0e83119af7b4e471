import type { Demand, Need, TokenLimits } from "./required-permissions.ts";
import { NAME_FORM, foldCase } from "../repository-name.ts";
import { EVERYTHING, allows } from "./scopes.ts";

/** Whether a token is limited at all; one for everything may also do what this service does not know. */
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
export function needText({ resource, or, level }: Need): string {
  return or === undefined ? `${resource}:${level}` : `${resource}:${level} or ${or}:${level}`;
}

/** Why a token with these limits does not meet the demand, in words for its holder; undefined: it does. */
export function demandFault(limits: TokenLimits, demand: Demand): string | undefined {
  for (const wanted of demand.repositories) {
    // Who knows which repository the code host takes such a name for?
    const [owner = "", name = "", ...rest] = wanted.split("/");
    if (!NAME_FORM.test(owner) || !NAME_FORM.test(name) || rest.length > 0) {
      return "Tokens of this service do not open repositories of such a name";
    }
    if (!isListed(limits, wanted)) return `The token is not for ${wanted}`;
  }
  const anyRepository = demand.anyRepository === true || limits.repositories.includes(EVERYTHING);
  if (demand.repositories.length === 0 && !anyRepository) {
    return "The token is for single repositories, and this concerns none in particular";
  }
  const lacking = demand.needs.filter(
    ({ resource, or = resource, level }) =>
      !allows(limits.scopes, resource, level) && !allows(limits.scopes, or, level),
  );
  if (lacking.length === 0) return undefined;
  const of = demand.repositories.length === 0 ? "" : ` for ${demand.repositories.join(", ")}`;
  return `The token lacks the scope ${lacking.map(needText).join(" and ")}${of}`;
}
