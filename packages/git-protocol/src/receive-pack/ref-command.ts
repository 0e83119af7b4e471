import { ProtocolError } from "../errors.ts";
import { isAnyOid, OID_BYTES, type ObjectFormat } from "../object-format.ts";

/** One command of a push (gitprotocol-pack, "Reference Update Request and Packfile Transfer"). */
export interface RefCommand {
  readonly name: string;
  /** Object id that the client saw. Undefined: the ref did not exist. */
  readonly oldOid: string | undefined;
  /** New object id. Undefined: delete the ref. */
  readonly newOid: string | undefined;
}

/** Decodes `<old> <new> <name>`. @throws ProtocolError `bad_line` */
export function decodeRefCommand(text: string): RefCommand {
  const first = text.indexOf(" ");
  const second = text.indexOf(" ", first + 1);
  const [oldOid, newOid, name] = [
    text.slice(0, Math.max(first, 0)),
    text.slice(first + 1, Math.max(second, 0)),
    text.slice(second + 1),
  ];
  if (
    !isAnyOid(oldOid) ||
    !isAnyOid(newOid) ||
    oldOid.length !== newOid.length ||
    second < 0 ||
    name === ""
  ) {
    throw new ProtocolError("bad_line", "push: a command is not `<old> <new> <name>`");
  }
  return { name, oldOid: oidOrNone(oldOid), newOid: oidOrNone(newOid) };
}

/** Text of a command, without a line feed. */
export function encodeRefCommand({ name, oldOid, newOid }: RefCommand, format: ObjectFormat): string {
  return `${oldOid ?? zeroOid(format)} ${newOid ?? zeroOid(format)} ${name}`;
}

/** The id that means "no object". */
export function zeroOid(format: ObjectFormat): string {
  return "0".repeat(OID_BYTES[format] * 2);
}

/** @returns undefined for the id that means "no object" */
export function oidOrNone(oid: string): string | undefined {
  return /^0+$/.test(oid) ? undefined : oid;
}
