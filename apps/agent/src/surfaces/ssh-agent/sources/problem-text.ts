/** Maximum number of problems that are named. */
const MAX_NAMED = 3;

/** The problems of a source as one text, each once. Undefined if there are none. */
export function problemText(problems: readonly string[]): string | undefined {
  const different = [...new Set(problems)];
  if (different.length === 0) return undefined;
  const rest = different.length - MAX_NAMED;
  return different.slice(0, MAX_NAMED).join("; ") + (rest > 0 ? `; and ${rest} more` : "");
}
