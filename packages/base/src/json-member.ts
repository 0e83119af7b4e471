/**
 * A member of parsed JSON of unknown shape; undefined if there is none. Inherited properties are not members.
 *
 * @param path names of the members that lead to it, outermost first; for an array, its indexes
 */
export function jsonMember(value: unknown, ...path: readonly (string | number)[]): unknown {
  let inner = value;
  for (const name of path) {
    if (typeof inner !== "object" || inner === null || !Object.hasOwn(inner, name)) return undefined;
    inner = (inner as Record<string | number, unknown>)[name];
  }
  return inner;
}

/** A member that is a string with at least one character; undefined otherwise. @param path as for {@link jsonMember} */
export function stringMember(value: unknown, ...path: readonly (string | number)[]): string | undefined {
  const found = jsonMember(value, ...path);
  return typeof found === "string" && found !== "" ? found : undefined;
}

/** A member that is a finite number; undefined otherwise. @param path as for {@link jsonMember} */
export function numberMember(value: unknown, ...path: readonly (string | number)[]): number | undefined {
  const found = jsonMember(value, ...path);
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}
