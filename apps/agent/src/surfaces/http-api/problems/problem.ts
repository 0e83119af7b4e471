import {
  problemDocument,
  type Problem as CommonProblem,
  type ProblemDocument,
  type ProblemTypes,
} from "@devplat/web-kit";
import type { OfferedKeyView } from "../../../remote-view.ts";
import type { FailureClass } from "../../forwards/openssh/failure.ts";

/** A kind of problem. @param hint what to do, where it is the same for each */
function kind<const Status extends number>(
  status: Status,
  title: string,
  hint?: string,
): { readonly status: Status; readonly title: string; readonly hint?: string } {
  return hint === undefined ? { status, title } : { status, title, hint };
}

/** Every error code of the JSON API and of the pages. */
export const PROBLEM_TYPES = {
  already_signed_in: kind(
    409,
    "The daemon holds a token already.",
    "Sign out first to sign in as another user.",
  ),
  login_refused: kind(403, "There is no login here, or none under way."),
  not_signed_in: kind(
    401,
    "The daemon holds no token for the secrets store.",
    "Run 'agent status' to see why, and sign in.",
  ),
  token_not_lendable: kind(403, "No store token can be lent to this host."),
  consent_pending: kind(
    503,
    "The user of the workstation is being asked for consent.",
    "Repeat the request after the time in Retry-After.",
  ),
  unlock_required: kind(
    401,
    "A session cookie or the web key is needed.",
    "Run 'agent open', or send 'Authorization: Bearer' with the content of web.key from the daemon's runtime folder.",
  ),
  other_user: kind(403, "The connection is not from the user that runs the daemon."),
  host_refused: kind(
    403,
    "The Host header does not name loopback.",
    "Use http://127.0.0.1, http://localhost or http://[::1] with the daemon's port.",
  ),
  origin_refused: kind(
    403,
    "The request comes from a page of another origin.",
    "Open the page again from the daemon's address, then repeat the action.",
  ),
  csrf_refused: kind(
    403,
    "The CSRF token is missing, was used before, or is too old.",
    "GET /api/v1/csrf gives one for a single use.",
  ),
  bad_request: kind(400, "The request cannot be read."),
  unsupported_media_type: kind(415, "The body has another media type than is read here."),
  bad_path: kind(400, "The path of a secret or folder breaks its rules."),
  unsupported_number: kind(400, "The store would return another number than the one written."),
  unsupported_text: kind(400, "The store would return another text than the one written."),
  body_too_large: kind(413, "The body is larger than is read here, or than the store takes in one secret."),
  not_editable: kind(
    403,
    "The secret is in no subtree of web.editable_paths.",
    "web.editable_paths names them. 'agent secrets put' is not bound by it.",
  ),
  enrolment_owned: kind(403, "An enrolment writes this secret."),
  exists: kind(409, "A secret or a field of this name exists."),
  version_conflict: kind(
    409,
    "The secret has changed since it was read.",
    "Read it again and repeat the change.",
  ),
  unusable_field: kind(422, "The field cannot be saved or removed like this."),
  confirmation_wrong: kind(409, "The name typed back is not the secret's."),
  clipboard_failed: kind(502, "No clipboard of this host could take the text."),
  busy: kind(503, "An action of this kind is running.", "Try again in a moment."),
  action_failed: kind(502, "This host's desktop has not done it."),
  store_denied: kind(403, "The store does not let the token do this.", "Its policies for your token decide."),
  store_refused: kind(
    422,
    "The store does not take what was sent.",
    "Its audit log has the reason; its operators can tell.",
  ),
  store_unavailable: kind(
    502,
    "The store cannot answer now.",
    "'agent status' says since when. Try again later.",
  ),
  not_found: kind(404, "Nothing is served or stored there."),
  mount_off: kind(
    404,
    "The filesystem mount is off.",
    "fuse.enabled: true in the configuration turns it on; a reload is enough.",
  ),
  mount_failed: kind(
    409,
    "The filesystem cannot be mounted or unmounted now.",
    "'agent doctor' tries what the mount needs.",
  ),
  mount_unsaved: kind(
    409,
    "An unmount would lose texts that the store did not take.",
    "Copy them out of the mount, or remove them there. A lazy unmount does not ask.",
  ),
  volumes_off: kind(
    404,
    "Container volumes are off.",
    "docker.enabled: true in the configuration turns them on; a reload is enough.",
  ),
  volume_unknown: kind(
    404,
    "There is no such volume.",
    "'agent docker list' and GET /api/v1/status list the volumes.",
  ),
  volume_failed: kind(422, "The files of the volume cannot be removed."),
  ssh_agent_off: kind(
    404,
    "The SSH agent is off.",
    "agent.enabled: true in the configuration turns it on; a reload is enough.",
  ),
  key_unknown: kind(
    404,
    "The SSH agent has no such key of its own.",
    "GET /api/v1/ssh-agent lists its keys.",
  ),
  passphrase_wrong: kind(422, "The passphrase does not open the key."),
  key_unusable: kind(422, "The key cannot be used."),
  too_many_tries: kind(429, "Too many passphrases were wrong.", "Try again in a minute."),
  host_unknown: kind(404, "There is no remote of this host.", "GET /api/v1/ssh/remotes lists them."),
  host_exists: kind(409, "There is a remote of this host.", "PATCH changes it."),
  host_key_unknown: kind(
    409,
    "Nobody has confirmed the key of this host.",
    "Compare its fingerprint with one from the host's administrator, then repeat the request with accept_fingerprint.",
  ),
  file_invalid: kind(409, "The file of the remotes cannot be used."),
  connection_failed: kind(422, "The host cannot be connected to. Nothing was saved."),
  remote_refused: kind(422, "A forward to this host cannot be made like this. Nothing was saved."),
  removed: kind(404, "What was served there has been removed."),
  sync_failed: kind(
    502,
    "The sync cycle ended with an error of its own, not of a rule.",
    "The daemon's log has the reason.",
  ),
  internal: kind(
    500,
    "The daemon failed because of a fault of its own.",
    "The daemon's log has the details.",
  ),
} satisfies ProblemTypes;

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
    hint: "'agent ssh list', 'agent status' and GET /api/v1/status show where a host waits.",
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
  mountOff: {
    detail: "The filesystem mount is off.",
    code: "mount_off",
  },
  volumesOff: {
    detail: "Container volumes are off, or their plugin cannot serve.",
    code: "volumes_off",
  },
  volumeUnknown: {
    detail: "There is no volume of this name.",
    code: "volume_unknown",
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
