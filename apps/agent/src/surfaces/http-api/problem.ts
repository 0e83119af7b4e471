import {
  problemDocument,
  type Problem as CommonProblem,
  type ProblemDocument,
  type ProblemTypes,
} from "@devplat/web-kit";
import type { OfferedKeyView } from "../../remote-view.ts";
import type { FailureClass } from "../forwards/openssh/failure.ts";

/** Every error code of the JSON API and of the pages. */
export const PROBLEM_TYPES = {
  already_signed_in: {
    status: 409,
    title: "The daemon holds a token already.",
    hint: "Sign out first to sign in as another user.",
  },
  login_refused: { status: 403, title: "There is no login here, or none under way." },
  not_signed_in: {
    status: 401,
    title: "The daemon holds no token for the secrets store.",
    hint: "Run 'agent status' to see why, and sign in.",
  },
  token_not_lendable: { status: 403, title: "No store token can be lent to this host." },
  consent_pending: {
    status: 503,
    title: "The user of the workstation is being asked for consent.",
    hint: "Repeat the request after the time in Retry-After.",
  },
  unlock_required: {
    status: 401,
    title: "A session cookie or the web key is needed.",
    hint: "Run 'agent open', or send 'Authorization: Bearer' with the content of web.key from the daemon's runtime folder.",
  },
  other_user: { status: 403, title: "The connection is not from the user that runs the daemon." },
  host_refused: {
    status: 403,
    title: "The Host header does not name loopback.",
    hint: "Use http://127.0.0.1, http://localhost or http://[::1] with the daemon's port.",
  },
  origin_refused: {
    status: 403,
    title: "The request comes from a page of another origin.",
    hint: "Open the page again from the daemon's address, then repeat the action.",
  },
  csrf_refused: {
    status: 403,
    title: "The CSRF token is missing, was used before, or is too old.",
    hint: "GET /api/v1/csrf gives one for a single use.",
  },
  bad_request: { status: 400, title: "The request cannot be read." },
  unsupported_media_type: { status: 415, title: "The body has another media type than is read here." },
  bad_path: { status: 400, title: "The path of a secret or folder breaks its rules." },
  unsupported_number: { status: 400, title: "The store would return another number than the one written." },
  unsupported_text: { status: 400, title: "The store would return another text than the one written." },
  body_too_large: {
    status: 413,
    title: "The body is larger than is read here, or than the store takes in one secret.",
  },
  not_editable: {
    status: 403,
    title: "The secret is in no subtree of web.editable_paths.",
    hint: "web.editable_paths names them. 'agent secrets put' is not bound by it.",
  },
  enrolment_owned: { status: 403, title: "An enrolment writes this secret." },
  exists: { status: 409, title: "A secret or a field of this name exists." },
  version_conflict: {
    status: 409,
    title: "The secret has changed since it was read.",
    hint: "Read it again and repeat the change.",
  },
  unusable_field: { status: 422, title: "The field cannot be saved or removed like this." },
  confirmation_wrong: { status: 409, title: "The name typed back is not the secret's." },
  clipboard_failed: { status: 502, title: "No clipboard of this host could take the text." },
  busy: { status: 503, title: "An action of this kind is running.", hint: "Try again in a moment." },
  action_failed: { status: 502, title: "This host's desktop has not done it." },
  store_denied: {
    status: 403,
    title: "The store does not let the token do this.",
    hint: "Its policies for your token decide.",
  },
  store_refused: {
    status: 422,
    title: "The store does not take what was sent.",
    hint: "Its audit log has the reason; its operators can tell.",
  },
  store_unavailable: {
    status: 502,
    title: "The store cannot answer now.",
    hint: "'agent status' says since when. Try again later.",
  },
  not_found: { status: 404, title: "Nothing is served or stored there." },
  ssh_agent_off: {
    status: 404,
    title: "The SSH agent is off.",
    hint: "agent.enabled: true in the configuration turns it on; a reload is enough.",
  },
  key_unknown: {
    status: 404,
    title: "The SSH agent has no such key of its own.",
    hint: "GET /api/v1/ssh-agent lists its keys.",
  },
  passphrase_wrong: { status: 422, title: "The passphrase does not open the key." },
  key_unusable: { status: 422, title: "The key cannot be used." },
  too_many_tries: {
    status: 429,
    title: "Too many passphrases were wrong.",
    hint: "Try again in a minute.",
  },
  host_unknown: {
    status: 404,
    title: "There is no remote of this host.",
    hint: "GET /api/v1/ssh/remotes lists them.",
  },
  host_exists: { status: 409, title: "There is a remote of this host.", hint: "PATCH changes it." },
  host_key_unknown: {
    status: 409,
    title: "Nobody has confirmed the key of this host.",
    hint: "Compare its fingerprint with one from the host's administrator, then repeat the request with accept_fingerprint.",
  },
  file_invalid: { status: 409, title: "The file of the remotes cannot be used." },
  connection_failed: { status: 422, title: "The host cannot be connected to. Nothing was saved." },
  remote_refused: {
    status: 422,
    title: "A forward to this host cannot be made like this. Nothing was saved.",
  },
  removed: { status: 404, title: "What was served there has been removed." },
  sync_failed: {
    status: 502,
    title: "The sync cycle ended with an error of its own, not of a rule.",
    hint: "The daemon's log has the reason.",
  },
  internal: {
    status: 500,
    title: "The daemon failed because of a fault of its own.",
    hint: "The daemon's log has the details.",
  },
} as const satisfies ProblemTypes;

export type ProblemCode = keyof typeof PROBLEM_TYPES;
export type ProblemStatus = (typeof PROBLEM_TYPES)[ProblemCode]["status"];

/** A refused request: the reason, and what to do. */
export type Problem = CommonProblem<ProblemCode>;

/** Members of problems of remotes, in addition to the common ones. */
export interface ProblemExtensions {
  /** With `host_key_unknown`: the key to be confirmed. */
  readonly offered?: OfferedKeyView;
  /** With `connection_failed`. */
  readonly class?: FailureClass;
  /** With `file_invalid`: line of the fault, which counts from 1; 0 if it has no line. */
  readonly line?: number;
}

/** The problem document. `error` is the same as `detail`: clients from before RFC 9457 read it. */
export function documentOf(
  problem: Problem,
  extensions: ProblemExtensions = {},
): ProblemDocument<ProblemCode> & ProblemExtensions & { readonly error: string } {
  return problemDocument(PROBLEM_TYPES, problem, { error: problem.detail, ...extensions });
}

/** Problems whose words are always the same. */
export const PROBLEMS = {
  alreadySignedIn: {
    detail: "The daemon is signed in already.",
    code: "already_signed_in",
  },
  noLogin: {
    detail: "The configured store needs no sign-in.",
    code: "login_refused",
  },
  noLoginUnderWay: {
    detail: "No login of this browser matches this callback.",
    code: "login_refused",
    hint: "Begin again from the start page; a login has to be finished within 5 minutes.",
  },
  notSignedIn: {
    detail: "The daemon is not signed in to the secrets store.",
    code: "not_signed_in",
  },
  unlockRequired: {
    detail: "This browser or program is not unlocked yet.",
    code: "unlock_required",
  },
  otherUser: {
    detail: "This connection does not come from the user that runs this daemon.",
    code: "other_user",
    hint: "Each user runs an own daemon, on an own port.",
  },
  ownerUnknown: {
    detail: "The system does not say which user this connection comes from.",
    code: "other_user",
    hint: "Keep the connection open until the answer is there, and do not connect from another container or network namespace.",
  },
  hostRefused: {
    detail: "The Host header does not name this machine's loopback address.",
    code: "host_refused",
  },
  originRefused: {
    detail: "The request does not come from a page of this daemon.",
    code: "origin_refused",
  },
  csrfRefused: {
    detail: "The X-CSRF-Token header is missing, was used before, or is older than 10 minutes.",
    code: "csrf_refused",
  },
  bodyTooLarge: {
    detail: "The request body is larger than 1 MiB.",
    code: "body_too_large",
  },
  notFound: {
    detail: "Nothing is served here.",
    code: "not_found",
  },
  noEnrolment: {
    detail: "There is no enrolment of this engine and key.",
    code: "not_found",
  },
  notSignedOut: {
    detail: "The daemon has no token of its own to revoke.",
    code: "login_refused",
    hint: "It comes from the environment, a peer, or a certificate; sign out there.",
  },
  noRemote: {
    detail: "There is no remote of this name.",
    code: "not_found",
    hint: "The list of remotes has those that there are.",
  },
  noSshAgent: {
    detail: "The SSH agent is off.",
    code: "not_found",
    hint: "agent.enabled: true in the configuration turns it on.",
  },
  noConsentWanted: {
    detail: "No host waits for this consent.",
    code: "not_found",
    hint: "GET /api/v1/status shows where a host waits, as asking.",
  },
  noPeerSocket: {
    detail: "The peer socket is off.",
    code: "not_found",
    hint: "api.peer.enabled: true in the configuration turns it on.",
  },
  noRule: {
    detail: "There is no rule of this name.",
    code: "not_found",
  },
  notJson: {
    detail: "The body is sent with Content-Type: application/json.",
    code: "unsupported_media_type",
  },
  smallBodyTooLarge: {
    detail: "The request body is larger than 64 KiB.",
    code: "body_too_large",
  },
  sshAgentOff: {
    detail: "The SSH agent is off.",
    code: "ssh_agent_off",
  },
  noQuestion: {
    detail: "Nobody waits for the answer to this question any more, or it asks for something else.",
    code: "not_found",
    hint: "GET /api/v1/ssh-agent lists the questions that wait.",
  },
  noRemotes: {
    detail: "This daemon has no managed SSH forwards.",
    code: "not_found",
  },
  notForm: {
    detail: "A peer action is asked for with Content-Type: application/x-www-form-urlencoded.",
    code: "unsupported_media_type",
  },
  unreadableForm: {
    detail: "The form cannot be read: a field is there twice, or its encoding is broken.",
    code: "bad_request",
  },
  formTooLarge: {
    detail: "The form is larger than 256 KiB.",
    code: "body_too_large",
  },
  busy: {
    detail: "An action of this kind runs already.",
    code: "busy",
  },
  noWebUi: {
    detail: "This daemon has no web UI.",
    code: "not_found",
    hint: "web.enabled: true starts one.",
  },
  badEncoding: {
    detail: "The path is not percent-encoded UTF-8.",
    code: "bad_path",
  },
  badIfMatch: {
    detail: "If-Match must be the version that the change is based on, a whole number from 1.",
    code: "bad_request",
  },
  folderPath: {
    detail: "A path that ends in a slash is a folder, and only a secret can be written.",
    code: "bad_path",
  },
  notEditable: {
    detail: "Secrets can be written here only below the configured editable paths.",
    code: "not_editable",
  },
  enrolmentOwned: {
    detail: "An enrolment writes this secret, so it is read-only here.",
    code: "enrolment_owned",
  },
  secretExists: {
    detail: "There is a secret at this path already.",
    code: "exists",
    hint: "PUT replaces it.",
  },
  nothingStored: {
    detail: "Nothing is stored at this path.",
    code: "not_found",
    hint: "The path of a folder ends in a slash; POST creates a secret.",
  },
  stale: {
    detail: "The secret has changed since the version that this change is based on.",
    code: "version_conflict",
  },
  storeTooSlow: {
    detail: "The store has not granted a token in time.",
    code: "store_unavailable",
    hint: "Ask again in a moment.",
  },
  noToken: {
    detail: "The embedded store works without a token.",
    code: "not_found",
  },
  formatUnknown: {
    detail: "The configuration can be downloaded with format=yaml or format=reg.",
    code: "bad_request",
  },
  storeDenied: {
    detail: "The secrets store does not allow this.",
    code: "store_denied",
  },
  storeRefused: {
    detail: "The secrets store answers that it does not take this.",
    code: "store_refused",
  },
  storeUnavailable: {
    detail: "The secrets store cannot answer now.",
    code: "store_unavailable",
  },
  syncFailed: {
    detail: "The sync cycle could not be run.",
    code: "sync_failed",
  },
  internal: {
    detail: "The daemon could not answer because of a fault of its own.",
    code: "internal",
  },
} as const satisfies Record<string, Problem>;
