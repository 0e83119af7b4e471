/**
 * What the JSON API answers when it does not do what was asked.
 * - `already_signed_in`: the daemon holds a token; one signs out first.
 * - `login_refused`: there is no login here, or none under way.
 * - `not_signed_in`: the daemon holds no token for the secrets store.
 * - `unlock_required`: neither session cookie nor web key, where one is needed.
 * - `other_user`: the connection is not from the user that runs the daemon.
 * - `host_refused`: the `Host` header does not name loopback.
 * - `origin_refused`: the request comes from a page that is not ours.
 * - `csrf_refused`: no CSRF token, or one that was used or is too old.
 * - `bad_request`: the request cannot be read.
 * - `unsupported_media_type`: a secret is written as `application/json`.
 * - `bad_path`: the path of a secret or folder breaks its rules.
 * - `unsupported_number`: the store would give another number back than the one written.
 * - `unsupported_text`: the same of a text with half of a surrogate pair.
 * - `body_too_large`: see MAX_BODY_BYTES; or the store takes less in one secret.
 * - `not_editable`: the secret is in no subtree of `web.editable_paths`.
 * - `enrolment_owned`: an enrolment writes this secret.
 * - `exists`: there is a secret already, or a field of that name.
 * - `version_conflict`: the secret has changed since it was read.
 * - `unusable_field`: the row cannot be saved or removed like that.
 * - `confirmation_wrong`: the name typed back is not the secret's.
 * - `clipboard_failed`: nothing here could take the text.
 * - `busy`: an action of this kind runs already.
 * - `action_failed`: this host's desktop has not done it.
 * - `store_denied`: the store does not let the token do that.
 * - `store_refused`: the store answers that it does not take what was asked.
 * - `store_unavailable`: the store cannot answer now.
 * - `not_found`: nothing is served there.
 * - `removed`: something was served there once; the hint says what replaced it.
 * - `sync_failed`: the cycle ended with an error of its own, not of a rule.
 * - `internal`: a fault of ours; the log has it.
 */
export type ProblemCode =
  | "already_signed_in"
  | "login_refused"
  | "not_signed_in"
  | "unlock_required"
  | "other_user"
  | "host_refused"
  | "origin_refused"
  | "csrf_refused"
  | "bad_request"
  | "unsupported_media_type"
  | "bad_path"
  | "unsupported_number"
  | "unsupported_text"
  | "body_too_large"
  | "not_editable"
  | "enrolment_owned"
  | "exists"
  | "version_conflict"
  | "unusable_field"
  | "confirmation_wrong"
  | "clipboard_failed"
  | "busy"
  | "action_failed"
  | "store_denied"
  | "store_refused"
  | "store_unavailable"
  | "not_found"
  | "removed"
  | "sync_failed"
  | "internal";

export const PROBLEM_STATUS = {
  already_signed_in: 409,
  login_refused: 403,
  not_signed_in: 401,
  unlock_required: 401,
  other_user: 403,
  host_refused: 403,
  origin_refused: 403,
  csrf_refused: 403,
  bad_request: 400,
  unsupported_media_type: 415,
  bad_path: 400,
  unsupported_number: 400,
  unsupported_text: 400,
  body_too_large: 413,
  not_editable: 403,
  enrolment_owned: 403,
  exists: 409,
  version_conflict: 409,
  unusable_field: 422,
  confirmation_wrong: 409,
  clipboard_failed: 502,
  busy: 503,
  action_failed: 502,
  store_denied: 403,
  store_refused: 422,
  store_unavailable: 502,
  not_found: 404,
  removed: 404,
  sync_failed: 502,
  internal: 500,
} as const satisfies Record<ProblemCode, number>;

/** The body of an error: what was refused and why, for a program, and what to do about it. */
export interface Problem {
  readonly error: string;
  readonly code: ProblemCode;
  readonly hint?: string;
}

export const PROBLEMS = {
  alreadySignedIn: {
    error: "The daemon is signed in already.",
    code: "already_signed_in",
    hint: "Sign out first to sign in as somebody else.",
  },
  noLogin: {
    error: "The configured store asks nobody to sign in.",
    code: "login_refused",
  },
  noLoginUnderWay: {
    error: "This answer belongs to no login that this browser has begun.",
    code: "login_refused",
    hint: "Begin again from the start page; a login has to be finished within 5 minutes.",
  },
  notSignedIn: {
    error: "The daemon is not signed in to the secrets store.",
    code: "not_signed_in",
    hint: "Run 'agent status' to see why, and sign in.",
  },
  unlockRequired: {
    error: "This browser or program has not been let in yet.",
    code: "unlock_required",
    hint: "Run 'agent open', or send 'Authorization: Bearer' with the content of web.key from the daemon's runtime folder.",
  },
  otherUser: {
    error: "This connection does not come from the user that runs this daemon.",
    code: "other_user",
    hint: "Each user runs an own daemon, on an own port.",
  },
  ownerUnknown: {
    error: "The system does not say which user this connection comes from.",
    code: "other_user",
    hint: "Keep the connection open until the answer is there, and do not connect from another container or network namespace.",
  },
  hostRefused: {
    error: "The Host header does not name this machine's loopback address.",
    code: "host_refused",
    hint: "Use http://127.0.0.1, http://localhost or http://[::1] with the daemon's port.",
  },
  originRefused: {
    error: "The request does not come from a page of this daemon.",
    code: "origin_refused",
    hint: "Open the page anew from the daemon's address and try again.",
  },
  csrfRefused: {
    error: "The X-CSRF-Token header is missing, was used before, or is older than 10 minutes.",
    code: "csrf_refused",
    hint: "GET /api/v1/csrf gives one for a single use.",
  },
  bodyTooLarge: {
    error: "The request body is larger than 1 MiB.",
    code: "body_too_large",
  },
  notFound: {
    error: "Nothing is served here.",
    code: "not_found",
  },
  noEnrolment: {
    error: "There is no enrolment of this engine and key.",
    code: "not_found",
  },
  notSignedOut: {
    error: "There is no token here that signing out could take away.",
    code: "login_refused",
    hint: "It comes from the environment, a peer, or a certificate; sign out there.",
  },
  noRule: {
    error: "There is no rule of this name.",
    code: "not_found",
  },
  notJson: {
    error: "A secret is written with Content-Type: application/json.",
    code: "unsupported_media_type",
  },
  notForm: {
    error: "A peer action is asked for with Content-Type: application/x-www-form-urlencoded.",
    code: "unsupported_media_type",
  },
  unreadableForm: {
    error: "The form cannot be read: a field is there twice, or its encoding is broken.",
    code: "bad_request",
  },
  formTooLarge: {
    error: "The form is larger than 256 KiB.",
    code: "body_too_large",
  },
  busy: {
    error: "An action of this kind runs already.",
    code: "busy",
    hint: "Try again in a moment.",
  },
  noWebUi: {
    error: "This daemon has no web UI.",
    code: "not_found",
    hint: "web.enabled: true starts one.",
  },
  badEncoding: {
    error: "The path is not percent-encoded UTF-8.",
    code: "bad_path",
  },
  badIfMatch: {
    error: "If-Match must be the version that the change is based on, a whole number from 1.",
    code: "bad_request",
  },
  folderPath: {
    error: "A path that ends in a slash is a folder, and only a secret can be written.",
    code: "bad_path",
  },
  notEditable: {
    error: "Secrets can be written here only below the configured editable paths.",
    code: "not_editable",
    hint: "web.editable_paths names them. 'agent secrets put' is not bound by it.",
  },
  enrolmentOwned: {
    error: "An enrolment writes this secret, so it is read-only here.",
    code: "enrolment_owned",
  },
  secretExists: {
    error: "There is a secret at this path already.",
    code: "exists",
    hint: "PUT replaces it.",
  },
  nothingStored: {
    error: "Nothing is stored at this path.",
    code: "not_found",
    hint: "The path of a folder ends in a slash; POST creates a secret.",
  },
  stale: {
    error: "The secret has changed since the version that this change is based on.",
    code: "version_conflict",
    hint: "Read it again and repeat the change.",
  },
  noToken: {
    error: "The embedded store works without a token.",
    code: "not_found",
  },
  formatUnknown: {
    error: "The configuration can be downloaded with format=yaml or format=reg.",
    code: "bad_request",
  },
  storeDenied: {
    error: "The secrets store does not allow this.",
    code: "store_denied",
    hint: "Its policies for your token decide.",
  },
  storeRefused: {
    error: "The secrets store answers that it does not take this.",
    code: "store_refused",
    hint: "Its audit log has the reason; its operators can tell.",
  },
  storeUnavailable: {
    error: "The secrets store cannot answer now.",
    code: "store_unavailable",
    hint: "'agent status' says since when. Try again later.",
  },
  syncFailed: {
    error: "The sync cycle could not be run.",
    code: "sync_failed",
    hint: "The daemon's log has the reason.",
  },
  internal: {
    error: "The daemon could not answer because of a fault of its own.",
    code: "internal",
    hint: "The daemon's log has the details.",
  },
} as const satisfies Record<string, Problem>;
