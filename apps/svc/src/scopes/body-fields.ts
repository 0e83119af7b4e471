/**
 * The fields of a request's body, of which some are judged. Servers that read field names in any letter case would take other
 * fields than the judged ones, so these must be written in lower case.
 *
 * @param judged names in lower case
 * @returns a sentence that says what is wrong with the body
 */
export function bodyFields(
  body: unknown,
  judged: readonly string[],
): Readonly<Record<string, unknown>> | string {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    return "The body must be a JSON object";
  }
  const written = Object.keys(body);
  const mixed = judged.find((name) => written.some((each) => each !== name && each.toLowerCase() === name));
  if (mixed !== undefined) return `The field ${mixed} is written in lower case`;
  return body as Readonly<Record<string, unknown>>;
}
