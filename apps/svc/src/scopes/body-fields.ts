/**
 * The fields of a request's body, of which some are checked. A server that ignores the case of field names could read other
 * fields than the checked ones, so these must be written in lower case.
 *
 * @param checked names in lower case
 * @returns a sentence about the fault of the body
 */
export function bodyFields(
  body: unknown,
  checked: readonly string[],
): Readonly<Record<string, unknown>> | string {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    return "The body must be a JSON object";
  }
  const written = Object.keys(body);
  const mixed = checked.find((name) => written.some((each) => each !== name && each.toLowerCase() === name));
  if (mixed !== undefined) return `The field ${mixed} is written in lower case`;
  return body as Readonly<Record<string, unknown>>;
}
