import { ProtocolError } from "../errors.ts";
import { isAnyOid, type ObjectFormat } from "../object-format.ts";
import { encodePktLine, FLUSH_PKT } from "../pkt-line.ts";
import { nextLine, PktLineReader } from "../pkt-line-reader.ts";
import { oidOrNone, zeroOid } from "./ref-command.ts";

/** Maximum characters of a reason. The name of a ref fits into the same packet. */
const MAX_REASON_LENGTH = 1000;

/** Result of one command of a push (gitprotocol-pack, "Report Status"). Text is Latin-1. */
export interface RefReport {
  /** The name in the command. */
  readonly name: string;
  /** Reason of a refusal, one line. Undefined: the command was carried out. */
  readonly error?: string;
  /** Changes that the server made to the command. Only report-status-v2 has them. */
  readonly changed?: {
    readonly name?: string;
    /** Undefined: unchanged. Null: the ref did not exist. */
    readonly oldOid?: string | null;
    /** Undefined: unchanged. Null: the ref was deleted. */
    readonly newOid?: string | null;
    readonly forced?: boolean;
  };
}

/** Result of a push. */
export interface PushReport {
  /** Reason for which the pack was refused, one line. Undefined: it was taken in, or there was none. */
  readonly unpackError: string | undefined;
  readonly refs: readonly RefReport[];
}

/**
 * Encodes a report, with its flush-pkt. The client asks for it by `report-status` or `report-status-v2`.
 *
 * @param version 1 leaves out {@link RefReport.changed}
 */
export function encodeReportStatus(report: PushReport, format: ObjectFormat, version: 1 | 2 = 2): Buffer {
  const lines = [`unpack ${report.unpackError === undefined ? "ok" : oneLine(report.unpackError)}`];
  for (const { name, error, changed = {} } of report.refs) {
    if (error !== undefined) {
      lines.push(`ng ${name} ${oneLine(error)}`);
      continue;
    }
    lines.push(`ok ${name}`);
    if (version === 1) continue;
    if (changed.name !== undefined) lines.push(`option refname ${changed.name}`);
    if (changed.oldOid !== undefined) lines.push(`option old-oid ${changed.oldOid ?? zeroOid(format)}`);
    if (changed.newOid !== undefined) lines.push(`option new-oid ${changed.newOid ?? zeroOid(format)}`);
    if (changed.forced === true) lines.push("option forced-update");
  }
  return Buffer.concat([...lines.map((line) => encodePktLine(`${line}\n`)), FLUSH_PKT]);
}

function oneLine(reason: string): string {
  const line = reason.replaceAll(/[\r\n\0]+/g, " ").trim();
  return line === "" ? "failed" : line.slice(0, MAX_REASON_LENGTH);
}

/**
 * Decodes a complete report of either version. Options that are not known are skipped.
 *
 * @throws ProtocolError `truncated`, `bad_line`, `unexpected_packet`, `trailing_data`, or a framing error
 */
export function decodeReportStatus(body: Buffer): PushReport {
  const reader = new PktLineReader();
  reader.push(body);
  const first = nextLine(reader, "report");
  if (first?.startsWith("unpack ") !== true) throw badLine("the first line is not `unpack <result>`");
  const result = first.slice("unpack ".length);
  const refs: RefReport[] = [];
  for (let line = nextLine(reader, "report"); line !== undefined; line = nextLine(reader, "report")) {
    const [word = "", name = "", ...more] = line.split(" ");
    if (word === "ok" && name !== "") {
      refs.push({ name: line.slice("ok ".length) });
    } else if (word === "ng" && name !== "" && more.length > 0) {
      refs.push({ name, error: more.join(" ") });
    } else if (word === "option" && name !== "") {
      const last = refs.pop();
      if (last === undefined || last.error !== undefined) throw badLine("an option follows no `ok`");
      refs.push({ ...last, changed: { ...last.changed, ...optionOf(name, more.join(" ")) } });
    } else {
      throw badLine("a line is not `ok`, `ng` or `option`");
    }
  }
  if (reader.pending > 0) throw new ProtocolError("trailing_data", "report: bytes follow the flush-pkt");
  return { unpackError: result === "ok" ? undefined : result, refs };
}

function optionOf(name: string, value: string): NonNullable<RefReport["changed"]> {
  if (name === "refname" && value !== "") return { name: value };
  if (name === "forced-update") return { forced: true };
  if (name !== "old-oid" && name !== "new-oid") return {};
  if (!isAnyOid(value)) throw badLine("an option has no object id");
  const oid = oidOrNone(value) ?? null;
  return name === "old-oid" ? { oldOid: oid } : { newOid: oid };
}

function badLine(found: string): ProtocolError {
  return new ProtocolError("bad_line", `report: ${found}`);
}
