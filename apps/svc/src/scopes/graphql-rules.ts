import type { Resource } from "../tokens/scopes.ts";

/**
 * Which parts of the code host's GraphQL schema limited tokens reach, kept by hand; `tools/scopes` applies it to the published
 * schema, and the result is graphql-table.ts. What is not named here is refused.
 */

/**
 * Types whose values belong to one repository: `TYPE RESOURCE EDGE…`. Their scalar fields need the resource at level
 * read. An EDGE is a field that leads to another value **of the same repository**. A field that leads to a type of this
 * list and is not named may lead to another repository: only {@link REFERENCE_FIELDS} can be selected behind it.
 *
 * A RESOURCE may be `issues|pull_requests`: either of the two. `~RESOURCE`: needs what led to it, and the resource only where nothing did (`node(id:)`, mutations).
 */
export const GRAPHQL_TYPES = `
Repository metadata branchProtectionRules codeowners commitComments contactLinks codeOfConduct contributingGuidelines defaultBranchRef deployKeys deployments discussion discussionCategories discussionCategory discussions environment environments fundingLinks interactionAbility issue issueOrPullRequest issueTemplates issues label labels languages latestRelease licenseInfo mergeQueue milestone milestones object pinnedDiscussions pinnedEnvironments pinnedIssues planFeatures primaryLanguage pullRequest pullRequestTemplates pullRequests ref refs release releases repositoryTopics ruleset rulesets submodules vulnerabilityAlert vulnerabilityAlerts
RepositoryCodeowners contents errors
RepositoryCodeownersError contents
RepositoryContactLink issues
CodeOfConduct metadata
ContributingGuidelines contents
FundingLink metadata
RepositoryInteractionAbility administration
RepositoryPlanFeatures metadata
Language metadata
License metadata conditions limitations permissions
LicenseRule metadata
RepositoryTopic metadata topic
Topic metadata
IssueTemplate issues labels
PullRequestTemplate pull_requests repository
DeployKey administration
BranchProtectionRule administration branchProtectionRuleConflicts matchingRefs repository requiredStatusChecks
BranchProtectionRuleConflict administration branchProtectionRule conflictingBranchProtectionRule ref
RequiredStatusCheckDescription administration
RepositoryRuleset metadata
RefUpdateRule metadata
Issue issues comments labels milestone reactionGroups reactions repository timelineItems userContentEdits subIssuesSummary projectCards projectItems
SubIssuesSummary issues
PullRequest pull_requests autoMergeRequest baseRef baseRepository comments commits files labels latestOpinionatedReviews latestReviews mergeCommit mergeQueue mergeQueueEntry milestone potentialMergeCommit projectCards projectItems reactionGroups reactions repository reviewRequests reviewThreads reviews statusCheckRollup suggestedReviewers timelineItems userContentEdits viewerLatestReview viewerLatestReviewRequest
AutoMergeRequest pull_requests pullRequest
ReviewRequest pull_requests pullRequest
SuggestedReviewer pull_requests
PullRequestChangedFile pull_requests
PullRequestCommit pull_requests commit pullRequest
PullRequestReview pull_requests comments commit pullRequest reactionGroups reactions repository userContentEdits
PullRequestReviewComment pull_requests commit originalCommit pullRequest pullRequestReview reactionGroups reactions replyTo repository userContentEdits
PullRequestReviewThread pull_requests comments pullRequest repository
PullRequestCommitCommentThread pull_requests comments commit pullRequest repository
IssueComment ~issues issue pullRequest reactionGroups reactions repository userContentEdits
UserContentEdit ~issues
Label ~issues|pull_requests issues pullRequests repository
Milestone ~issues|pull_requests issues pullRequests repository
Reaction ~issues
ReactionGroup ~issues
PinnedIssue issues issue repository
MergeQueue pull_requests configuration entries repository
MergeQueueConfiguration pull_requests
MergeQueueEntry pull_requests baseCommit headCommit mergeQueue pullRequest
ProjectCard ~projects
ProjectColumn projects
Project projects
ProjectV2Item ~projects
ProjectV2 projects
Commit contents blame checkSuites comments deployments file history parents signature status statusCheckRollup submodules tree author authors committer
GitActor ~contents
GitSignature contents
GpgSignature contents
SmimeSignature contents
SshSignature contents
UnknownSignature contents
Blame contents ranges
BlameRange contents commit
Tree contents entries repository
TreeEntry contents language object repository submodule
Blob contents repository
Tag contents repository tagger target
Ref contents branchProtectionRule compare refUpdateRule repository target
Comparison contents baseTarget commits headTarget
Submodule contents
CommitComment contents commit reactionGroups reactions repository userContentEdits
Release contents reactionGroups reactions releaseAssets repository tag tagCommit
ReleaseAsset contents release
CheckSuite checks branch checkRuns commit repository workflowRun
CheckRun checks annotations checkSuite deployment repository steps
CheckAnnotation checks location
CheckAnnotationSpan checks start end
CheckAnnotationPosition checks
CheckStep checks
App metadata
Workflow actions runs
WorkflowRun actions checkSuite file workflow
WorkflowRunFile actions run
Status statuses combinedContexts commit context contexts
StatusContext statuses commit
StatusCheckRollup ~checks commit contexts
Deployment deployments commit latestStatus ref repository statuses
DeploymentStatus deployments deployment
Environment environments latestCompletedDeployment
PinnedEnvironment environments environment repository
Discussion discussions answer category comments labels poll reactionGroups reactions repository userContentEdits
DiscussionComment discussions discussion reactionGroups reactions replies replyTo userContentEdits
DiscussionCategory discussions repository
DiscussionPoll discussions discussion options
DiscussionPollOption discussions poll
PinnedDiscussion discussions discussion repository
RepositoryVulnerabilityAlert vulnerability_alerts repository securityAdvisory securityVulnerability
SecurityAdvisory vulnerability_alerts cvss cwes identifiers references vulnerabilities
SecurityVulnerability vulnerability_alerts advisory firstPatchedVersion package
SecurityAdvisoryPackage vulnerability_alerts
SecurityAdvisoryPackageVersion vulnerability_alerts
SecurityAdvisoryIdentifier vulnerability_alerts
SecurityAdvisoryReference vulnerability_alerts
CVSS vulnerability_alerts
CWE vulnerability_alerts
LinkedBranch issues
AssignedEvent ~issues assignable
UnassignedEvent ~issues assignable
ClosedEvent ~issues closable
ReopenedEvent ~issues closable
CommentDeletedEvent ~issues
ConvertedToDiscussionEvent ~issues
CrossReferencedEvent ~issues target
ConnectedEvent ~issues
DisconnectedEvent ~issues
LabeledEvent ~issues label labelable
UnlabeledEvent ~issues label labelable
LockedEvent ~issues lockable
UnlockedEvent ~issues lockable
MentionedEvent ~issues
MilestonedEvent ~issues
DemilestonedEvent ~issues
MarkedAsDuplicateEvent ~issues
UnmarkedAsDuplicateEvent ~issues
PinnedEvent ~issues issue
UnpinnedEvent ~issues issue
ReferencedEvent ~issues subject
RenamedTitleEvent ~issues subject
SubscribedEvent ~issues
UnsubscribedEvent ~issues
TransferredEvent ~issues issue
UserBlockedEvent ~issues
AutoMergeDisabledEvent pull_requests pullRequest
AutoMergeEnabledEvent pull_requests pullRequest
AutomaticBaseChangeFailedEvent pull_requests pullRequest
AutomaticBaseChangeSucceededEvent pull_requests pullRequest
BaseRefChangedEvent pull_requests pullRequest
BaseRefDeletedEvent pull_requests pullRequest
BaseRefForcePushedEvent pull_requests afterCommit beforeCommit pullRequest ref
ConvertToDraftEvent pull_requests pullRequest
DeployedEvent pull_requests deployment pullRequest
DeploymentEnvironmentChangedEvent pull_requests deploymentStatus pullRequest
HeadRefDeletedEvent pull_requests pullRequest
HeadRefForcePushedEvent pull_requests pullRequest
HeadRefRestoredEvent pull_requests pullRequest
MergedEvent pull_requests commit mergeRef pullRequest
ReadyForReviewEvent pull_requests pullRequest
ReviewDismissedEvent pull_requests pullRequest pullRequestCommit review
ReviewRequestRemovedEvent pull_requests pullRequest
ReviewRequestedEvent pull_requests pullRequest
AddedToMergeQueueEvent pull_requests mergeQueue pullRequest
RemovedFromMergeQueueEvent pull_requests mergeQueue pullRequest
`;

/**
 * Edges from what every token may read, behind which names are free all the same: REST shows them in `GET /repos/{owner}/{repo}`,
 * too. Every other one needs the resource of what it leads to, even for a name, an id or a number of values.
 */
export const OPEN_EDGES: readonly string[] = ["Repository.defaultBranchRef"];

/** What it takes to learn which kind of value, or whether any, stands behind an abstract type that nothing guarded led to. */
export const ROOTED_ABSTRACT: Readonly<Record<string, readonly Resource[]>> = {
  GitObject: ["contents"],
  IssueOrPullRequest: ["issues", "pull_requests"],
};

/** What a value of another repository, or one beside what the token may read, may show: names, addresses and little more. */
export const REFERENCE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "*": ["__typename", "id", "number", "oid", "abbreviatedOid", "url", "resourcePath"],
  // As the REST API shows of a fork's parent to whoever reads the fork; `gh` asks for it before it opens an issue.
  Repository: [
    "name",
    "nameWithOwner",
    "owner",
    "description",
    "defaultBranchRef",
    "hasIssuesEnabled",
    "hasWikiEnabled",
    "isPrivate",
    "viewerPermission",
  ],
  // Beside the checks and pull requests that they belong to.
  BranchProtectionRule: ["requiresStrictStatusChecks", "requiredApprovingReviewCount"],
  Workflow: ["name"],
  WorkflowRun: ["event", "workflow"],
  Ref: ["name", "prefix"],
  Project: ["name"],
  ProjectV2: ["title"],
  ProjectColumn: ["name"],
  Topic: ["name"],
};

/** Fields of these that are nobody's business behind a token for a repository. */
export const GRAPHQL_WITHHELD = [
  "Repository.tempCloneToken",
  "Repository.viewerSubscription",
  "Repository.viewerPossibleCommitEmails",
  "Repository.forks",
  "Repository.hasVulnerabilityAlertsEnabled",
  // What REST refuses for the same reason: they name repositories that only the credential behind the token may see.
  "Topic.repositories",
  "Issue.parent",
  "Issue.subIssues",
  "Issue.trackedInIssues",
  "Issue.trackedIssues",
  "CrossReferencedEvent.source",
  "ConnectedEvent.source",
  "ConnectedEvent.subject",
  "DisconnectedEvent.source",
  "DisconnectedEvent.subject",
  "MarkedAsDuplicateEvent.canonical",
  "MarkedAsDuplicateEvent.duplicate",
  "UnmarkedAsDuplicateEvent.canonical",
  "UnmarkedAsDuplicateEvent.duplicate",
  "ReferencedEvent.commit",
  "ReferencedEvent.commitRepository",
  "TransferredEvent.fromRepository",
];

/** People, teams and organizations: only their public profile, and an organization's name behind a team. */
export const PROFILE_TYPES = [
  "Actor",
  "Assignee",
  "Bot",
  "EnterpriseUserAccount",
  "Mannequin",
  "Organization",
  "RepositoryOwner",
  "RequestedReviewer",
  "Team",
  "User",
] as const;
export const PROFILE_FIELDS = [
  "__typename",
  "avatarUrl",
  "combinedSlug",
  "databaseId",
  "id",
  "isViewer",
  "login",
  "name",
  "organization",
  "resourcePath",
  "slug",
  "url",
] as const;

/** Unions and interfaces of types above; they need nothing of their own. */
export const GRAPHQL_ABSTRACT = [
  "Assignable",
  "Closable",
  "Closer",
  "GitObject",
  "IssueOrPullRequest",
  "IssueTimelineItems",
  "Labelable",
  "Lockable",
  "Node",
  "PullRequestTimelineItems",
  "ReferencedSubject",
  "RenamedTitleSubject",
  "RequirableByPullRequest",
  "SearchResultItem",
  "StatusCheckRollupContext",
] as const;

/** Fields of the schema's roots, by how they are judged (graphql-judge.ts). */
export const QUERY_FIELDS = `
repository repository
node node
nodes node
search search
viewer profile
user account
organization account
repositoryOwner account
rateLimit open
meta open
license open
licenses open
codeOfConduct open
codesOfConduct open
`;

/**
 * Mutations: `NAME RESOURCE` needs the resource at level write, and every id and repository in its input must belong to
 * an allowed repository, or to a person or team. `NAME @FIELD`: the resource is that of the value which the input field names.
 */
export const MUTATIONS = `
addAssigneesToAssignable @assignableId
addComment @subjectId
addDiscussionComment discussions
addDiscussionPollVote discussions
addLabelsToLabelable @labelableId
addPullRequestReview pull_requests
addPullRequestReviewComment pull_requests
addPullRequestReviewThread pull_requests
addPullRequestReviewThreadReply pull_requests
addReaction @subjectId
addUpvote discussions
approveDeployments deployments
archiveRepository administration
clearLabelsFromLabelable @labelableId
closeDiscussion discussions
closeIssue issues
closePullRequest pull_requests
convertPullRequestToDraft pull_requests
createBranchProtectionRule administration
createCheckRun checks
createCheckSuite checks
createCommitOnBranch contents
createDeployment deployments
createDeploymentStatus deployments
createDiscussion discussions
createEnvironment environments
createIssue issues
createLabel issues|pull_requests
createLinkedBranch contents
createPullRequest pull_requests
createRef contents
deleteBranchProtectionRule administration
deleteDeployment deployments
deleteDiscussion discussions
deleteDiscussionComment discussions
deleteEnvironment environments
deleteIssue issues
deleteIssueComment @id
deleteLabel issues|pull_requests
deletePullRequestReview pull_requests
deletePullRequestReviewComment pull_requests
deleteRef contents
dequeuePullRequest pull_requests
disablePullRequestAutoMerge pull_requests
dismissPullRequestReview pull_requests
dismissRepositoryVulnerabilityAlert vulnerability_alerts
enablePullRequestAutoMerge pull_requests+contents
enqueuePullRequest pull_requests+contents
lockLockable @lockableId
markDiscussionCommentAsAnswer discussions
markFileAsViewed pull_requests
markPullRequestReadyForReview pull_requests
mergeBranch contents
mergePullRequest pull_requests+contents
minimizeComment @subjectId
pinIssue issues
rejectDeployments deployments
removeAssigneesFromAssignable @assignableId
removeLabelsFromLabelable @labelableId
removeReaction @subjectId
removeUpvote discussions
reopenDiscussion discussions
reopenIssue issues
reopenPullRequest pull_requests
requestReviews pull_requests
rerequestCheckSuite checks
resolveReviewThread pull_requests
revertPullRequest pull_requests+contents+workflows
submitPullRequestReview pull_requests
unlockLockable @lockableId
unmarkDiscussionCommentAsAnswer discussions
unmarkFileAsViewed pull_requests
unminimizeComment @subjectId
unpinIssue issues
unresolveReviewThread pull_requests
updateBranchProtectionRule administration
updateCheckRun checks
updateDiscussion discussions
updateDiscussionComment discussions
updateEnvironment environments
updateIssue issues
updateIssueComment @id
updateLabel issues|pull_requests
updatePullRequest pull_requests
updatePullRequestBranch pull_requests+contents
updatePullRequestReview pull_requests
updatePullRequestReviewComment pull_requests
updateRef contents
updateRefs contents
`;
