/** Qualifiers that widen a search beyond the repositories that it names. */
const WIDENING = new Set(["user", "org", "owner", "enterprise", "repo_id"].values());

/**
 * The repositories that a search is limited to by its `repo:` qualifiers. GitHub joins several by OR, and every other
 * qualifier narrows, except those of owners.
 *
 * @returns `owner/name` each; a text: why the search cannot be held to repositories
 */
export function repositoriesOfSearch(query: string): readonly string[] | string {
  const repositories: string[] = [];
  // Words, with their quoted parts; a quotation mark that is never closed would be read differently elsewhere.
  if ((query.match(/"/g) ?? []).length % 2 !== 0) return "it has an unclosed quotation mark";
  for (const word of query.match(/(?:"[^"]*"|[^\s"])+/g) ?? []) {
    if (word.startsWith('"')) continue;
    if (/[()\\]/.test(word)) return "it has parentheses";
    if (/^(?:OR|NOT|AND)$/i.test(word)) return "it has a boolean operator";
    const [, qualifier = "", value = ""] = /^([A-Za-z_.-]+):(.*)$/s.exec(word) ?? [];
    const name = qualifier.toLowerCase();
    if (WIDENING.has(name)) return `it has the qualifier ${name}:`;
    if (name !== "repo") continue;
    const repository = value.replaceAll('"', "");
    if (!/^[\w.-]+\/[\w.-]+$/.test(repository)) return "a repo: qualifier names no single repository";
    repositories.push(repository);
  }
  return repositories.length > 0 ? repositories : "it has no repo: qualifier";
}

/** Which kinds of issues a search gives: both, unless it says which. */
export function issueKindsOfSearch(query: string): ("issues" | "pull_requests")[] {
  const words = new Set(query.toLowerCase().split(/\s+/).values());
  const issues = words.has("is:issue") || words.has("type:issue");
  // Only pull requests have reviews: `gh pr status` asks so.
  const reviewed = [...words].some((word) => /^(?:team-)?review(?:ed-by|-requested)?:/.test(word));
  const pulls = reviewed || words.has("is:pr") || words.has("type:pr") || words.has("is:pull-request");
  if (issues === pulls) return ["issues", "pull_requests"];
  return issues ? ["issues"] : ["pull_requests"];
}
