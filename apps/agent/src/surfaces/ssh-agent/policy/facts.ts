import { visible } from "@devplat/base/terminal";
import { fingerprint, type SignedData } from "@devplat/ssh-protocol";
import { programName, type ProcessRecord } from "@devplat/base/process-record";
import type { PeerProcess } from "../peer-process/peer-process.ts";
import type { NamedSession, Origin } from "./permission.ts";

/** A line of a question to the user. A line that is not verified repeats what the client claims. */
export interface Fact {
  readonly text: string;
  readonly verified: boolean;
}

/** The facts about a signature that the user is asked to confirm. */
export function factsOf(caller: PeerProcess | undefined, origin: Origin, purpose: SignedData): Fact[] {
  return [purposeFact(origin, purpose), ...forwardingFacts(origin), ...callerFacts(caller)];
}

/** Purpose of a signature in a few words, for the log. */
export function purposeText(purpose: SignedData): string {
  switch (purpose.kind) {
    case "userauth":
      return `login as ${visible(purpose.request.user)}`;
    case "sshsig":
      return `signature for ${visible(purpose.data.namespace)}`;
    default:
      return "other data";
  }
}

/** Name of the host that a login is for, or the fingerprint of its key; undefined where nobody knows it. */
export function destinationOf(origin: Origin): string | undefined {
  const last = origin.kind === "bound" ? origin.sessions.at(-1) : undefined;
  return last === undefined || last.isForwarding ? undefined : nameOf(last);
}

/** Names of the hosts that a connection is forwarded through. */
export function hopsOf(origin: Origin): string[] {
  return origin.kind === "bound"
    ? origin.sessions.filter(({ isForwarding }) => isForwarding).map(nameOf)
    : [];
}

/** Names of all hosts on the way, for comparisons. */
export function wayOf(origin: Origin, purpose: SignedData): string {
  const hosts = origin.kind === "bound" ? origin.sessions.map(({ hostKey }) => fingerprint(hostKey)) : [];
  return JSON.stringify([origin.kind, purposeText(purpose), ...hosts]);
}

function purposeFact(origin: Origin, purpose: SignedData): Fact {
  if (purpose.kind === "sshsig") {
    return { text: `Sign data for ${visible(purpose.data.namespace)}`, verified: true };
  }
  if (purpose.kind === "unknown") return { text: "Sign data of an unknown kind", verified: false };
  const user = visible(purpose.request.user);
  const last = origin.kind === "bound" ? origin.sessions.at(-1) : undefined;
  // The login itself comes from a host that the connection is forwarded to.
  if (last === undefined || last.isForwarding) {
    return { text: `Log in as ${user} to a host that the client does not name`, verified: false };
  }
  return { text: `Log in as ${user} to ${nameOf(last)}`, verified: last.names.length > 0 };
}

function forwardingFacts(origin: Origin): Fact[] {
  if (origin.kind === "unknown") {
    return [{ text: "Possibly through a forwarded agent: the client does not say it", verified: false }];
  }
  const hops = hopsOf(origin);
  return hops.length === 0
    ? []
    : [{ text: `Through a forwarded agent: ${hops.join(", then ")}`, verified: true }];
}

function callerFacts(caller: PeerProcess | undefined): Fact[] {
  if (caller === undefined) return [{ text: "By a program that cannot be seen", verified: false }];
  const chain = [caller, ...caller.ancestors];
  return [
    {
      text: `By ${chain.map(programText).join(", started by ")}`,
      verified: chain.every(({ program }) => program !== undefined),
    },
  ];
}

function programText(record: ProcessRecord): string {
  return `${visible(programName(record))} (${record.pid})`;
}

function nameOf({ names, hostKey }: NamedSession): string {
  const [first] = names;
  return first === undefined ? `an unknown host with the key ${fingerprint(hostKey)}` : visible(first);
}
