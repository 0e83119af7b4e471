import { hash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";
import { Secret } from "@devplat/base";
import { BRAND } from "../brand.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 62^43 > 2^256: as many bits as 32 random bytes. */
const BODY_LENGTH = 43;
/** 62^6 > 2^32: a CRC-32. */
const CHECKSUM_LENGTH = 6;
/** Characters of a token that are stored and shown, prefix included. */
const START_LENGTH = 12;

export type TokenKind = "session" | "proxy" | "agent";

const PREFIXES: Readonly<Record<TokenKind, string>> = {
  session: BRAND.adminTokenPrefix,
  proxy: BRAND.proxyTokenPrefix,
  agent: BRAND.agentTokenPrefix,
};
const KINDS = Object.entries(PREFIXES) as [TokenKind, string][];
const ANY_PREFIX = new RegExp(Object.values(PREFIXES).join("|"));

/** A fresh token: prefix, 43 random base62 characters, and a CRC-32 of both in 6, so that scanners can check one offline. */
export function createToken(kind: TokenKind): Secret {
  let body = PREFIXES[kind];
  for (let index = 0; index < BODY_LENGTH; index++) body += BASE62.charAt(randomInt(BASE62.length));
  return new Secret(body + checksum(body));
}

/** The kind that a text's prefix claims, whether or not it is a token; undefined: not one of our prefixes. */
export function claimedKind(text: string): TokenKind | undefined {
  return KINDS.find(([, prefix]) => text.startsWith(prefix))?.[0];
}

/** Whether the text has the form and checksum of one of our tokens. It may never have been issued. */
export function isWellFormed(text: string): boolean {
  const kind = claimedKind(text);
  if (kind === undefined) return false;
  const bodyEnd = PREFIXES[kind].length + BODY_LENGTH;
  if (text.length !== bodyEnd + CHECKSUM_LENGTH) return false;
  return text.slice(bodyEnd) === checksum(text.slice(0, bodyEnd)) && /^[0-9A-Za-z_]+$/.test(text);
}

/** Whether one of our prefixes occurs anywhere in the text. */
export function holdsTokenPrefix(text: string): boolean {
  return ANY_PREFIX.test(text);
}

/** Tokens of code hosts that tell what they are by their form (docs.github.com, "GitHub's token formats"). */
const HOST_TOKEN = /gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}/;

/** Whether a text holds one of our tokens or one of a code host. Such a text is not logged. */
export function holdsCredential(text: string): boolean {
  return ANY_PREFIX.test(text) || HOST_TOKEN.test(text);
}

const OWN_TOKENS = new RegExp(`(${ANY_PREFIX.source})[0-9A-Za-z]+`, "g");
const HOST_TOKENS = new RegExp(HOST_TOKEN.source, "g");

/** The text with every token in it, ours or a code host's, cut down to its prefix. */
export function withoutCredentials(text: string): string {
  if (!holdsCredential(text)) return text;
  return text
    .replaceAll(OWN_TOKENS, "$1***")
    .replaceAll(HOST_TOKENS, (token) => `${token.slice(0, token.indexOf("_") + 1)}***`);
}

/** The stored form of a token: its SHA-256 (a random 256-bit value needs no slow hash). */
export function tokenHash(text: string): string {
  return hash("sha256", text, "hex");
}

export function tokenStart(token: Secret): string {
  return token.reveal().slice(0, START_LENGTH);
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let index = 0; index < CHECKSUM_LENGTH; index++) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
}
