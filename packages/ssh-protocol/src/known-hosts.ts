import { createHmac, randomBytes } from "node:crypto";
import { decodeBase64 } from "./base64.ts";
import { SshProtocolError } from "./errors.ts";
import { matchesHost } from "./host-pattern.ts";
import { decodePublicKeyLine, encodePublicKeyLine } from "./public-key-line.ts";

const DEFAULT_PORT = 22;
const HASH_MAGIC = "|1|";
const SHA1_BYTES = 20;
const MARKERS = ["cert-authority", "revoked"] as const;

/** Marker of a line: none, a key that signs certificates of hosts, or a key that must not be accepted. */
export type KnownHostsMarker = (typeof MARKERS)[number];

/** The hosts of a line. */
export type KnownHostNames =
  | { readonly kind: "patterns"; readonly patterns: readonly string[] }
  /** One name, which can only be compared with a name that is known already. */
  | { readonly kind: "hashed"; readonly salt: Buffer; readonly hash: Buffer };

/** A line of a known_hosts file (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"). */
export interface KnownHost {
  readonly marker: KnownHostsMarker | undefined;
  readonly names: KnownHostNames;
  readonly keyType: string;
  readonly blob: Buffer;
  readonly comment: string;
}

export interface KnownHostsFile {
  /** Numbered from 1. */
  readonly hosts: readonly (KnownHost & { readonly line: number })[];
  /** Numbers of the lines that cannot be read; ssh ignores them, too. */
  readonly faults: readonly number[];
}

/** The name that stands for a host and port in known_hosts: the port only if it is not 22. */
export function knownHostName({ host, port }: { host: string; port: number }): string {
  const name = host.toLowerCase();
  return port === DEFAULT_PORT ? name : `[${name}]:${port}`;
}

/** Decodes a file. Empty lines and comments are left out. */
export function decodeKnownHosts(text: string): KnownHostsFile {
  const hosts: (KnownHost & { line: number })[] = [];
  const faults: number[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue;
    try {
      hosts.push({ line: index + 1, ...decodeKnownHostsLine(line) });
    } catch (error) {
      if (!(error instanceof SshProtocolError)) throw error;
      faults.push(index + 1);
    }
  }
  return { hosts, faults };
}

/** Decodes one line. @throws SshProtocolError */
export function decodeKnownHostsLine(line: string): KnownHost {
  const [, markerText, namesText = "", keyText = ""] = /^\s*(?:@(\S+)\s+)?(\S+)\s+(\S.*)$/s.exec(line) ?? [];
  const marker = MARKERS.find((each) => each === markerText);
  if (marker === undefined && markerText !== undefined) {
    throw new SshProtocolError("unsupported", "the marker of a line of known_hosts is not supported");
  }
  const { type, blob, comment } = decodePublicKeyLine(keyText);
  return { marker, names: decodeNames(namesText), keyType: type, blob, comment };
}

/** Writes a line without a line feed. @throws SshProtocolError `bad_value` for a name that cannot stand in a line */
export function encodeKnownHostsLine({
  marker,
  names,
  blob,
  comment,
}: Pick<KnownHost, "marker" | "names" | "blob" | "comment">): string {
  const prefix = marker === undefined ? "" : `@${marker} `;
  return `${prefix}${encodeNames(names)} ${encodePublicKeyLine(blob, comment)}`;
}

/** Hashes a name as `HashKnownHosts` of ssh does. */
export function hashKnownHostName(name: string, salt: Buffer = randomBytes(SHA1_BYTES)): KnownHostNames {
  return { kind: "hashed", salt, hash: createHmac("sha1", salt).update(name).digest() };
}

/** Tells whether a line is about a name in the form of {@link knownHostName}. */
export function isAboutHost({ names }: KnownHost, name: string): boolean {
  if (names.kind === "patterns") return matchesHost(name, names.patterns);
  const { hash } = hashKnownHostName(name, names.salt) as KnownHostNames & { hash: Buffer };
  return hash.equals(names.hash);
}

/** The lines about a name, in their order; the caller tells them apart by their markers. */
export function knownHostsOf<Line extends KnownHost>(hosts: readonly Line[], name: string): Line[] {
  return hosts.filter((each) => isAboutHost(each, name));
}

/**
 * The names that lines without a marker give a key: each name that a line spells out, and each candidate that a
 * pattern or hash of a line fits. A line with a negated pattern gives candidates only.
 */
export function namesOfKey(
  hosts: readonly KnownHost[],
  blob: Buffer,
  candidates: readonly string[],
): Set<string> {
  const names = new Set<string>();
  for (const host of hosts) {
    if (host.marker !== undefined || !host.blob.equals(blob)) continue;
    const spelled = host.names.kind === "patterns" ? host.names.patterns.filter(isLiteral) : [];
    for (const name of [...spelled, ...candidates]) {
      if (isAboutHost(host, name)) names.add(name.toLowerCase());
    }
  }
  return names;
}

/** Tells whether any line revokes a key, for any host. Check the key of a certificate's authority as well. */
export function isRevoked(hosts: readonly KnownHost[], blob: Buffer): boolean {
  return hosts.some((host) => host.marker === "revoked" && host.blob.equals(blob));
}

function isLiteral(pattern: string): boolean {
  return !/[*?!]/.test(pattern);
}

function decodeNames(text: string): KnownHostNames {
  if (!text.startsWith("|")) return { kind: "patterns", patterns: text.split(",") };
  const [salt, hash, ...more] = text.slice(HASH_MAGIC.length).split("|").map(decodeBase64);
  const isSound = text.startsWith(HASH_MAGIC) && salt?.length === SHA1_BYTES && hash?.length === SHA1_BYTES;
  if (!isSound || more.length > 0) {
    throw new SshProtocolError("bad_value", "the hashed name in a line of known_hosts is not valid");
  }
  return { kind: "hashed", salt, hash };
}

function encodeNames(names: KnownHostNames): string {
  if (names.kind === "hashed") {
    return `${HASH_MAGIC}${names.salt.toString("base64")}|${names.hash.toString("base64")}`;
  }
  const text = names.patterns.join(",");
  const isSound = names.patterns.length > 0 && names.patterns.every((pattern) => /^[^\s,]+$/.test(pattern));
  // These characters begin a comment, a marker and a hashed name.
  if (!isSound || /^[#@|]/.test(text)) {
    throw new SshProtocolError("bad_value", "a host name cannot stand in known_hosts");
  }
  return text;
}
