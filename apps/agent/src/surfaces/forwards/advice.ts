import { BRAND } from "../../brand.ts";
import type { DiskFault, Failure, FailureClass } from "./openssh/failure.ts";

/** Instructions for each class of failure; `HOST` stands for the host of the remote. */
const ADVICE: Readonly<Record<FailureClass, string>> = {
  dns: "Check the name of the host, and HostName in ~/.ssh/config.",
  unreachable: "Check the network and the VPN of this host.",
  refused: "Check the port, and that the SSH server of HOST is running.",
  timeout: "Check the address, the network and the firewall.",
  handshake: "Run 'ssh -v HOST', and look at the log of its SSH server.",
  authentication: "Run 'ssh-add -l', and check that HOST accepts one of these keys for the user.",
  "host-key": `Ask the administrator of HOST whether its key was changed, then run '${BRAND.command} ssh add HOST --repin'.`,
  "socket-bind": `Remove the remote socket if no other workstation uses it, or set another one by '${BRAND.command} ssh edit HOST --socket PATH'.`,
  "socket-folder":
    "Make the folder of the remote socket on HOST: it must belong to the account, with mode 0700.",
  "forwarding-denied":
    "Allow 'AllowStreamLocalForwarding yes' in sshd_config of HOST, or ask its administrator.",
  local: `Run '${BRAND.command} doctor', and look at the log of the daemon.`,
};
/** For a server without SFTP. */
const SFTP_ADVICE =
  "Set 'AllowStreamLocalForwarding yes' and 'StreamLocalBindUnlink yes' in sshd_config of HOST: without SFTP the daemon cannot remove the socket of an earlier connection.";
/** For a socket that another forward of this daemon has. */
const OWN_FORWARD_ADVICE = `Set another socket by '${BRAND.command} ssh edit HOST --socket PATH', or remove one of the two remotes.`;
/** The same, for a remote that was not saved. */
const NEW_OWN_FORWARD_ADVICE = `Choose another socket by '${BRAND.command} ssh add HOST --socket PATH'.`;
const DISK_ADVICE: Readonly<Record<DiskFault, string>> = {
  full: "Free space on HOST, or files if it has no inodes left ('df -i').",
  "read-only": "Ask the administrator of HOST why its disk is read-only.",
};
/** For a system whose OpenSSH cannot keep a forward up. */
const UNSUPPORTED_ADVICE =
  "Run the daemon on Linux or macOS, such as in WSL. The remote is kept for the time when this works here.";
/** For a remote that was not saved. */
const NEW_SOCKET_ADVICE = `Remove the remote socket if no other workstation uses it, or choose another one by '${BRAND.command} ssh add HOST --socket PATH'.`;
/** For a host whose key is neither pinned nor signed by an authority. */
const PIN_ADVICE = `Run '${BRAND.command} ssh add HOST --repin', which shows the key and pins it.`;

/** Failures that may pass without an action of a person. */
const PASSING: ReadonlySet<FailureClass> = new Set(["dns", "unreachable", "refused", "timeout"]);

/** Advice to a person about a failure of a forward. @param hasPin whether a key is pinned for the host */
export function adviceFor(failure: Failure, host: string, hasPin: boolean): string {
  if (failure.class === "host-key" && !hasPin) return PIN_ADVICE.replaceAll("HOST", host);
  const advice = textFor(failure).replaceAll("HOST", host);
  const passes = PASSING.has(failure.class) || failure.disk !== undefined;
  return passes ? `${advice} It is tried again by itself.` : advice;
}

/** Advice to a person about the connection of a remote that was not saved. It is not tried again. */
export function dialAdvice(failure: Failure, host: string): string {
  return newRemoteText(failure).replaceAll("HOST", host);
}

function newRemoteText(failure: Failure): string {
  if (failure.ownForward !== undefined) return NEW_OWN_FORWARD_ADVICE;
  const isTaken = failure.class === "socket-bind" && failure.withoutSftp === undefined;
  return isTaken ? NEW_SOCKET_ADVICE : textFor(failure);
}

function textFor(failure: Failure): string {
  if (failure.ownForward !== undefined) return OWN_FORWARD_ADVICE;
  if (failure.disk !== undefined) return DISK_ADVICE[failure.disk];
  if (failure.unsupported === true) return UNSUPPORTED_ADVICE;
  return failure.withoutSftp === undefined ? ADVICE[failure.class] : SFTP_ADVICE;
}
