import { SshProtocolError } from "../errors.ts";
import { WireReader, WireWriter } from "../wire.ts";

/** Numbers of the constraints (draft-ietf-sshm-ssh-agent section 5.2.7). */
const LIFETIME = 1;
const CONFIRM = 2;
const EXTENSION = 255;
const RESTRICT_DESTINATION = "restrict-destination-v00@openssh.com";

/** How a key may be used that is added to an agent. */
export type KeyConstraint =
  | { readonly type: "lifetime"; readonly seconds: number }
  | { readonly type: "confirm" }
  /** The key may be used if one of the hops is permitted. */
  | { readonly type: "restrict-destination"; readonly hops: readonly PermittedHop[] };

/** A step from one host to the next that a key may be used for (OpenSSH's PROTOCOL.agent section 2). */
export interface PermittedHop {
  /** The host of the agent itself has an empty name and no keys. */
  readonly from: HopEnd;
  readonly to: HopEnd;
}

export interface HopEnd {
  /** Empty: any user. Always empty for `from`. */
  readonly user: string;
  readonly host: string;
  readonly keys: readonly HopKey[];
}

/** A host key, or the key of an authority for host keys. */
export interface HopKey {
  readonly blob: Buffer;
  readonly isAuthority: boolean;
}

/**
 * Reads constraints up to the end. The length of an unknown one is not known, so none can be skipped.
 *
 * @throws SshProtocolError `unsupported` for an unknown constraint
 */
export function readConstraints(reader: WireReader): KeyConstraint[] {
  const constraints: KeyConstraint[] = [];
  while (reader.remaining > 0) {
    const type = reader.byte();
    if (type === LIFETIME) constraints.push({ type: "lifetime", seconds: reader.uint32() });
    else if (type === CONFIRM) constraints.push({ type: "confirm" });
    else if (type === EXTENSION && reader.name() === RESTRICT_DESTINATION) {
      constraints.push({ type: "restrict-destination", hops: readHops(reader.string()) });
    } else throw new SshProtocolError("unsupported", "a constraint of the key is not supported");
  }
  return constraints;
}

export function writeConstraints(constraints: readonly KeyConstraint[], writer: WireWriter): void {
  for (const constraint of constraints) {
    if (constraint.type === "lifetime") writer.byte(LIFETIME).uint32(constraint.seconds);
    else if (constraint.type === "confirm") writer.byte(CONFIRM);
    else {
      const hops = new WireWriter();
      for (const { from, to } of constraint.hops) {
        hops.string(new WireWriter().string(hopEnd(from)).string(hopEnd(to)).string("").bytes());
      }
      writer.byte(EXTENSION).string(RESTRICT_DESTINATION).string(hops.bytes());
    }
  }
}

/** OpenSSH packs each hop and each of its ends into a string of its own, unlike its document says. */
function readHops(packed: Buffer): PermittedHop[] {
  const reader = new WireReader(packed);
  const hops: PermittedHop[] = [];
  while (reader.remaining > 0) {
    const hop = new WireReader(reader.string());
    const [from, to] = [readHopEnd(hop.string()), readHopEnd(hop.string())];
    readReserved(hop);
    hop.end();
    if (from.user !== "")
      throw new SshProtocolError("bad_value", "the first end of a permitted hop names a user");
    if ((from.host === "") !== (from.keys.length === 0)) {
      throw new SshProtocolError(
        "bad_value",
        "the first end of a permitted hop has a name or keys, not both",
      );
    }
    if (to.host === "" || to.keys.length === 0) {
      throw new SshProtocolError("bad_value", "the second end of a permitted hop lacks a name or keys");
    }
    hops.push({ from, to });
  }
  return hops;
}

function readHopEnd(packed: Buffer): HopEnd {
  const reader = new WireReader(packed);
  const [user, host] = [reader.text(), reader.text()];
  readReserved(reader);
  const keys: HopKey[] = [];
  while (reader.remaining > 0) keys.push({ blob: reader.string(), isAuthority: reader.boolean() });
  return { user, host, keys };
}

/** A later version may restrict a hop further here: what is not understood must be refused. */
function readReserved(reader: WireReader): void {
  if (reader.string().length > 0) {
    throw new SshProtocolError("unsupported", "a permitted hop has an extension that is not supported");
  }
}

function hopEnd({ user, host, keys }: HopEnd): Buffer {
  const writer = new WireWriter().string(user).string(host).string("");
  for (const { blob, isAuthority } of keys) writer.string(blob).boolean(isAuthority);
  return writer.bytes();
}
