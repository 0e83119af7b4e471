/**
 * Which right each documented REST operation of Gitea needs, in the form and words of rest-rules.ts. An issue's operations
 * also reach pull requests, which Gitea numbers together: who has them for issues has them for both, as at the code host.
 * `tools/scopes` applies it to the description that Gitea serves; the result is gitea-table.ts.
 */
export const GITEA_RULES = `
GET ~$ metadata
* ~$ administration
* ~/actions/runners administration
* ~/actions/secrets secrets
* ~/actions actions
GET ~/activities contents+issues+pull_requests
* ~/archive contents
GET ~/assignees issues|pull_requests
* ~/avatar administration
* ~/branch_protections administration
* ~/branches contents
GET ~/collaborators metadata
* ~/collaborators administration
GET ~/commits/{ref}/status statuses
GET ~/commits/{ref}/statuses statuses
GET ~/commits/{sha}/pull pull_requests
* ~/commits contents
GET ~/compare/{basehead} contents
POST ~/contents$ contents+workflows
* ~/contents contents
* ~/contents-ext contents
POST ~/diffpatch contents+workflows
GET ~/editorconfig/{path} contents
GET ~/file-contents contents
POST ~/file-contents contents:read
* ~/forks refused it reaches other repositories
* ~/git contents
* ~/hooks/git administration
* ~/hooks repository_hooks
* ~/issue_config contents
* ~/issue_templates contents
* ~/issues/{index}/blocks refused it reaches other repositories
* ~/issues/{index}/dependencies refused it reaches other repositories
* ~/issues/{index}/timeline refused it shows issues of other repositories
* ~/issues/{index}/stopwatch refused stopwatches belong to an account
* ~/issues issues
* ~/keys administration
* ~/labels issues|pull_requests
GET ~/languages metadata
GET ~/licenses metadata
GET ~/media/{path} contents
POST ~/merge-upstream contents+workflows
* ~/milestones issues|pull_requests
POST ~/mirror-sync contents+workflows
GET ~/new_pin_allowed issues
* ~/notifications refused notifications belong to an account
GET ~/pulls/{index}/merge pull_requests
POST ~/pulls/{index}/merge pull_requests+contents
POST ~/pulls/{index}/update pull_requests+contents
* ~/pulls pull_requests
* ~/push_mirrors administration
* ~/push_mirrors-sync administration
GET ~/raw/{path} contents
* ~/releases contents
GET ~/reviewers pull_requests
GET ~/signing-key.gpg metadata
GET ~/signing-key.pub metadata
GET ~/stargazers metadata
* ~/statuses statuses
GET ~/subscribers metadata
* ~/subscription refused subscriptions belong to an account
* ~/tag_protections administration
* ~/tags contents
* ~/teams administration
* ~/times issues
GET ~/topics metadata
* ~/topics administration
* ~/transfer refused it moves the repository to another account
* ~/wiki contents
* /repos refused it reaches other repositories
* /repositories/{id} refused by its number only where that is resolved
* /activitypub refused it belongs to an account
* /admin refused it belongs to the site
* /gitignore open
* /label open
* /licenses open
POST /markdown/raw open
POST /markdown refused it renders references to other repositories
POST /markup refused it renders references to other repositories
GET /nodeinfo open
* /notifications refused notifications belong to an account
* /org refused it belongs to an account
* /orgs refused it belongs to an account
* /packages refused packages belong to an account
GET /settings open
GET /signing-key.gpg open
GET /signing-key.pub open
* /teams refused it belongs to an account
* /topics refused it reaches other repositories
GET /user$ open
* /user refused it belongs to an account
* /users refused it belongs to an account
GET /version open
`;
