import { AppError } from "@devplat/base";

/**
 * - `usage`: the command line is wrong.
 * - `not_configured`: there is no configuration file.
 * - `config_refused`: a configuration may not be used (who can write it, or a system configuration forbids it).
 * - `registry_file_invalid`: a registry file cannot be read, or cannot hold what is configured.
 * - `not_signed_in`: no valid token for the secrets store.
 * - `token_file_refused`: the token file is not safe to use, or cannot be written.
 * - `identity_refused`: a token belongs to another identity than the last one.
 * - `token_not_lent`: a peer lends no token, or its user has not decided yet.
 * - `login_failed`: the store or its directory did not let the user in.
 * - `login_cancelled`: the user gave up.
 * - `login_refused`: the configuration allows no login here, or another program is in its way.
 * - `certificate_unusable`: the client certificate is missing, expired or unreadable, or could not be issued.
 * - `seal_failed`: the TPM cannot seal or unseal.
 * - `locked`: another process of this user is the writer.
 * - `place_refused`: one of our own folders cannot be used.
 * - `target_refused`: a rule may not write there.
 * - `target_tracked`: the target is under version control.
 * - `target_foreign`: a whole-file target holds content that we did not write.
 * - `target_busy`: the target kept changing while it was written.
 * - `target_unwritable`: the operating system refused the write.
 * - `edit_failed`: a large file could not be edited: the thread for it ended or ran out of memory.
 * - `overlap`: two rules manage the same key of one file.
 * - `template_failed`: the template does not parse or render.
 * - `value_injection`: a value would change the structure of the document.
 * - `secret_missing`: nothing is stored under the rule's key.
 * - `run_failed`: the rule's command failed.
 * - `nothing_to_restore`: there is no backup for the rule.
 * - `enrolment_failed`: a credential could not be had; the message says why.
 * - `enrolment_cancelled`: the user or the daemon's end stopped an enrolment.
 * - `enrolment_unknown`: no enrolment is configured under that key.
 * - `enrolment_state`: the enrolment is not in a state where that can be done.
 * - `confirmation_needed`: the command destroys something and was not confirmed.
 * - `listen_refused`: `web.listen` is not an address on loopback.
 * - `port_in_use`: another program listens where the web UI should.
 * - `desktop_failed`: this host's desktop has not done the action, or there is none.
 * - `socket_refused`: a socket cannot be where it is configured.
 * - `socket_in_use`: another program answers on a socket of this daemon.
 * - `mount_refused`: nothing can be mounted at the configured folder.
 * - `mount_off`: a rule's file is on the mount, and there is no mount.
 * - `mount_name_taken`: a rule's file on the mount has the name of a secret's file.
 * - `base_refused`: the base file of a rule cannot be read.
 * - `mount_failed`: the system refused an action on the mount.
 * - `mount_unsaved`: an unmount would lose texts that the store did not take.
 * - `daemon_unreachable`: no running daemon of this user answers.
 * - `registration_refused`: the volume plugin cannot be registered with a container engine.
 * - `service_refused`: the daemon cannot be a service here, or its service cannot be changed so.
 * - `service_failed`: the service manager of the host failed, or the service does not work.
 * - `daemon_refused`: the running daemon responds, but could not do the action.
 */
export type AgentErrorCode =
  | "usage"
  | "not_configured"
  | "config_refused"
  | "registry_file_invalid"
  | "not_signed_in"
  | "token_file_refused"
  | "identity_refused"
  | "token_not_lent"
  | "login_failed"
  | "login_cancelled"
  | "login_refused"
  | "certificate_unusable"
  | "seal_failed"
  | "locked"
  | "place_refused"
  | "policy_unreadable"
  | "target_refused"
  | "target_tracked"
  | "target_foreign"
  | "target_busy"
  | "target_unwritable"
  | "edit_failed"
  | "overlap"
  | "template_failed"
  | "value_injection"
  | "secret_missing"
  | "run_failed"
  | "nothing_to_restore"
  | "enrolment_failed"
  | "enrolment_cancelled"
  | "enrolment_unknown"
  | "enrolment_state"
  | "confirmation_needed"
  | "listen_refused"
  | "port_in_use"
  | "desktop_failed"
  | "socket_refused"
  | "socket_in_use"
  | "mount_refused"
  | "mount_off"
  | "mount_name_taken"
  | "base_refused"
  | "mount_failed"
  | "mount_unsaved"
  | "daemon_unreachable"
  | "registration_refused"
  | "service_refused"
  | "service_failed"
  | "daemon_refused";

/** Every error that the daemon and its command line raise themselves. */
export class AgentError extends AppError<AgentErrorCode> {}

/**
 * Text of a failure that may be shown and stored. Messages of AppError are written for that. Any other error is a fault in
 * the program, and its message could quote a value.
 */
export function publicMessage(error: unknown): string {
  if (error instanceof AppError)
    return error.hint === undefined ? error.message : `${error.message}. ${error.hint}`;
  return `internal error (${error instanceof Error ? error.name : typeof error})`;
}
