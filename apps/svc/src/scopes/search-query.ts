/** Qualifiers that widen a search beyond the repositories that it names. */
const WIDENING = new Set(["user", "org", "owner", "enterprise", "repo_id"].values());
/** A quotation, a qualifier whose values may be quoted, or a word without quotation marks. */
const WORD = /^(?:-?"[^"]*"|[^ ":]+:(?:"[^"]*"|[^ ",]*)(?:,(?:"[^"]*"|[^ ",]*))*|[^ "]+)$/;

/**
 * The repositories that a search is limited to by its `repo:` qualifiers. GitHub joins several by OR, and every other
 * qualifier narrows, except those of owners.
 *
 * @returns `owner/name` each; a text: why the search cannot be held to repositories
 */
export function repositoriesOfSearch(query: string): readonly string[] | string {
  const words = wordsOf(query);
  if (typeof words === "string") return words;
  const repositories: string[] = [];
  for (const word of words) {
    if (/[()]/.test(word)) return "it has parentheses";
    if (/^(?:OR|NOT|AND)$/i.test(word)) return "it has a boolean operator";
    const [, qualifier = "", value = ""] = /^([^":]*):(.*)$/s.exec(word) ?? [];
    // Some servers fold such letters into those of a qualifier's name.
    if (/[^\x21-\x7e]/.test(qualifier)) return "it has a qualifier that is not ASCII";
    const name = qualifier.toLowerCase();
    if (WIDENING.has(name)) return `it has the qualifier ${name}:`;
    if (name !== "repo") continue;
    // Quoted whole or not at all: `acme/app"-docs"` might also be acme/app and a text.
    const repository = /^("?)([\w.-]+\/[\w.-]+)\1$/.exec(value)?.[2];
    if (repository === undefined) return "a repo: qualifier names no single repository";
    repositories.push(repository);
  }
  return repositories.length > 0 ? repositories : "it has no repo: qualifier";
}

/** Kinds of issues in the result of a search: both, unless a qualifier selects one. */
export function issueKindsOfSearch(query: string): ("issues" | "pull_requests")[] {
  const found = wordsOf(query.toLowerCase());
  const words = new Set(typeof found === "string" ? [] : found.values());
  const issues = words.has("is:issue") || words.has("type:issue");
  // Only pull requests have reviews, and `gh pr status` uses only these qualifiers.
  const reviewed = [...words].some((word) =>
    /^(?:review-requested|reviewed-by|team-review-requested):./.test(word),
  );
  const pulls = reviewed || words.has("is:pr") || words.has("type:pr") || words.has("is:pull-request");
  if (issues === pulls) return ["issues", "pull_requests"];
  return issues ? ["issues"] : ["pull_requests"];
}

/**
 * The words of a query, with their quoted parts, without pure quotations. Text in quotation marks is never a qualifier.
 *
 * @returns a text: the reason why the code host may read it differently
 */
function wordsOf(query: string): readonly string[] | string {
  if ((query.match(/"/g) ?? []).length % 2 !== 0) return "it has an unclosed quotation mark";
  if (query.includes("\\")) return "it has a backslash";
  // Servers differ in whether such a character ends a word.
  if (/[^\S ]|\p{C}/u.test(query)) return "it has a blank that is not a space, or a control character";
  const words = query.match(/(?:"[^"]*"|[^ "])+/g) ?? [];
  if (!words.every((word) => WORD.test(word))) return "it has a quotation mark within a word";
  return words.filter((word) => !word.startsWith('"'));
}
