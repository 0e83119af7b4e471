/**
 * Which right each documented REST operation of GitHub needs, kept by hand in the terms of its fine-grained permissions.
 * `tools/scopes` applies it to the published description; the result is rest-table.ts.
 *
 * A line is `METHODS PATH RIGHT`; the first that fits counts. METHODS: `GET`, `PUT,POST`, `*`, or `W` (all but GET). PATH: a
 * template's beginning, up to a slash or to its end; with `$` its whole. A leading `~` stands for `/repos/{owner}/{repo}`.
 *
 * RIGHT:
 * - `contents:read+checks:read`: every one of these, for the repository in the path; without a level it is `read` for GET and
 *   `write` otherwise
 * - `issues|pull_requests`: either of the two
 * - `issues/pr`: issues, or pull_requests where the `{issue_number}` is a pull request's
 * - `owner members`: concerns an account: the right, and a token for every repository
 * - `open`: says nothing of any repository
 * - `search code`, `search issues`, `search commits`, `search labels`: by its query
 * - `refused REASON`: not for limited tokens
 */
const REST_RULES = `
* ~/actions/secrets secrets
* ~/actions/organization-secrets secrets
* ~/actions/permissions administration
* ~/actions/runners administration
* ~/actions/oidc administration
* ~/actions/cache/retention-limit administration
* ~/actions/cache/storage-limit administration
W ~/actions/workflows/{workflow_id}/dispatches actions:write
* ~/actions actions
* ~/agents/secrets secrets
* ~/agents/organization-secrets secrets
* ~/agents/variables actions
* ~/agents/organization-variables actions
* ~/activity contents
* ~/assignees issues|pull_requests
* ~/attestations contents
* ~/autolinks administration
* ~/automated-security-fixes administration
GET ~/branches$ contents
GET ~/branches/{branch}$ contents
POST ~/branches/{branch}/rename contents:write+administration:write
* ~/branches/{branch}/protection administration
* ~/check-runs checks
* ~/check-suites checks
* ~/code-quality security_events
POST ~/code-scanning/alerts/{alert_number}/autofix/commits security_events:write+contents:write
* ~/code-scanning security_events
* ~/code-security-configuration administration
* ~/codeowners contents
* ~/codespaces/secrets secrets
* ~/codespaces refused codespaces belong to an account
GET ~/collaborators metadata
* ~/collaborators administration
* ~/comments contents
GET ~/commits/{ref}/check-runs checks
GET ~/commits/{ref}/check-suites checks
GET ~/commits/{ref}/status statuses
GET ~/commits/{ref}/statuses statuses
GET ~/commits/{commit_sha}/pulls pull_requests
* ~/commits contents
* ~/community metadata
* ~/compare contents
* ~/contents contents
* ~/contributors metadata
* ~/copilot administration
* ~/dependabot/alerts vulnerability_alerts
* ~/dependabot/secrets secrets
* ~/dependabot/repository-access administration
* ~/dependency-graph contents
* ~/deployments deployments
POST ~/dispatches contents
* ~/environments/{environment_name}/secrets secrets+environments
* ~/environments/{environment_name}/variables environments
* ~/environments environments
GET ~/events contents+issues+pull_requests
* ~/forks refused it reaches other repositories
* ~/git contents
GET ~/hash-algorithm metadata
* ~/hooks repository_hooks
* ~/immutable-releases administration
* ~/import administration
* ~/installation refused it belongs to an app
* ~/interaction-limits administration
* ~/invitations administration
GET ~/issue-types metadata
* ~/issues/{issue_number}/timeline refused it shows events of other repositories
* ~/issues/{issue_number}/sub_issue refused it reaches issues of other repositories
* ~/issues/{issue_number}/sub_issues refused it reaches issues of other repositories
* ~/issues/{issue_number}/parent refused it reaches issues of other repositories
* ~/issues/{issue_number}/dependencies refused it reaches issues of other repositories
* ~/issues/{issue_number} issues/pr
* ~/issues issues
* ~/keys administration
* ~/labels issues|pull_requests
GET ~/languages metadata
GET ~/license contents
* ~/merge-upstream contents+workflows
* ~/merges contents
* ~/milestones issues|pull_requests
* ~/notifications refused notifications belong to an account
* ~/pages pages
* ~/private-vulnerability-reporting administration
GET ~/properties metadata
* ~/properties administration
PUT ~/pulls/{pull_number}/merge pull_requests:write+contents:write
PUT ~/pulls/{pull_number}/merge-async pull_requests:write+contents:write
PUT ~/pulls/{pull_number}/update-branch pull_requests:write+contents:write
POST ~/pulls/{pull_number}/codespaces refused codespaces belong to an account
* ~/pulls pull_requests
GET ~/readme contents
* ~/releases contents
GET ~/rules metadata
GET ~/rulesets/rule-suites administration
GET ~/rulesets/{ruleset_id}/history administration
GET ~/rulesets metadata
* ~/rulesets administration
* ~/secret-scanning secret_scanning_alerts
POST ~/security-advisories/{ghsa_id}/forks refused it reaches other repositories
* ~/security-advisories security_events
* ~/stacks pull_requests
GET ~/stargazers metadata
GET ~/stats metadata
* ~/statuses statuses
GET ~/subscribers metadata
* ~/subscription refused subscriptions belong to an account
GET ~/tags$ contents
* ~/tags/protection administration
GET ~/tarball contents
GET ~/zipball contents
GET ~/teams administration
GET ~/topics metadata
* ~/topics administration
* ~/traffic administration
* ~/transfer refused it moves the repository to another account
* ~/vulnerability-alerts administration
GET ~$ metadata
* ~$ administration
* /repos/{template_owner}/{template_repo}/generate refused it reaches other repositories
* /agents refused agent tasks belong to an account
GET /networks/{owner}/{repo}/events refused it shows events of other repositories
GET /$ open
GET /rate_limit open
GET /meta open
GET /versions open
GET /zen open
GET /octocat open
GET /emojis open
GET /user$ open
GET /licenses open
GET /gitignore open
GET /codes_of_conduct open
POST /markdown/raw open
POST /markdown$ refused it renders references to other repositories
GET /advisories open
GET /apps open
GET /search/code search code
GET /search/commits search commits
GET /search/issues search issues
GET /search/labels search labels
GET /search refused it searches every repository
GET /orgs/{org}/members owner members
GET /orgs/{org}/public_members owner members
GET /orgs/{org}/teams owner members
* /orgs/{org}/memberships owner members
* /orgs/{org}/outside_collaborators owner members
* /orgs/{org}/invitations owner members
W /orgs/{org}/members owner members
W /orgs/{org}/teams owner members
* /teams owner members
* /orgs/{org}/packages owner packages
* /user/packages owner packages
* /users/{username}/packages owner packages
* /orgs/{org}/projects owner projects
* /orgs/{org}/projectsV2 owner projects
* /users/{username}/projects owner projects
* /users/{username}/projectsV2 owner projects
* /users/{user_id}/projectsV2 owner projects
* /user/{user_id}/projectsV2 owner projects
* /projects owner projects
GET /orgs/{org}/repos owner metadata
GET /user/repos owner metadata
GET /users/{username}/repos owner metadata
GET /orgs/{org}$ owner metadata
GET /users/{username}$ owner metadata
* /app refused it belongs to an app
* /app-manifests refused it belongs to an app
* /applications refused it belongs to an app
* /installation refused it belongs to an app
* /marketplace_listing refused it belongs to an app
* /credentials refused it revokes credentials of others
* /assignments refused it belongs to an account
* /classrooms refused it belongs to an account
* /enterprises refused it belongs to an account
* /events refused it belongs to no repository
* /feeds refused it belongs to an account
* /gists refused gists belong to an account
* /issues refused it reaches every repository
* /notifications refused notifications belong to an account
* /organizations refused it belongs to an account
* /orgs refused it belongs to an account
* /repositories refused it reaches every repository
* /user refused it belongs to an account
* /users refused it belongs to an account
`;

/** One line of the rules. */
export interface RestRule {
  /** Undefined: all. */
  readonly methods: readonly string[] | "W" | undefined;
  readonly path: string;
  readonly whole: boolean;
  readonly right: string;
}

export function parseRestRules(text = REST_RULES): RestRule[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [methods = "", path = "", ...right] = line.split(" ");
      const whole = path.endsWith("$");
      return {
        methods: methods === "*" ? undefined : methods === "W" ? "W" : methods.split(","),
        path: (whole ? path.slice(0, -1) : path).replace(/^~/, "/repos/{owner}/{repo}"),
        whole,
        right: right.join(" "),
      };
    });
}

/** The right that an operation needs, its levels filled in; undefined: no rule is for it. */
export function rightOf(rules: readonly RestRule[], method: string, template: string): string | undefined {
  const rule = rules.find(
    ({ methods, path, whole }) =>
      (methods === undefined || (methods === "W" ? method !== "GET" : methods.includes(method))) &&
      (template === path || (!whole && template.startsWith(path === "/" ? "/" : `${path}/`))),
  );
  if (rule === undefined) return undefined;
  const level = method === "GET" ? "read" : "write";
  const [word = "", rest] = rule.right.split(" ");
  if (["refused", "open", "search"].includes(word)) return rule.right;
  const subject = word === "owner" ? (rest ?? "") : word;
  const filled = subject
    .split("+")
    .map((part) => (part.includes(":") || part === "issues/pr" ? part : `${part}:${level}`))
    .map((part) => (part === "issues/pr" ? `issues/pr:${level}` : part))
    .join("+");
  return word === "owner" ? `owner ${filled}` : filled;
}
