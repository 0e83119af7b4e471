import { isIP } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { BRAND } from "../../../brand.ts";
import { lendingKeys } from "../../../config/sections/lending.ts";
import { PEER_OFFERS } from "../../../config/sections/peer-offers.ts";
import { targetPathFault } from "../../../config/sections/rule.ts";
import { platformOf } from "../../../platform/platform.ts";
import type { RemoteSetting } from "../../../remote-settings.ts";
import { z } from "zod";

/** Maximum length of a socket's path on every system that a remote host may run (104 with the final NUL on BSD), in bytes. */
export const MAX_REMOTE_SOCKET_BYTES = 103;
export const DEFAULT_PORT = 22;

/**
 * A host name, or an alias of ssh_config. It is written into command lines, ssh_config patterns, known_hosts lines and URLs, so
 * it can hold no character that one of them reads as more than a name. The limit is that of a domain name (RFC 1035).
 */
const HOST_NAME = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})$/;
/** ssh refuses other user names, or expands them. */
const USER = /^[A-Za-z0-9_][A-Za-z0-9._@+-]{0,100}$/;
/** Control characters, and format characters such as those that change the direction of a text. */
export const INVISIBLE_CHARACTERS = /[\p{Cc}\p{Cf}]/u;
/** One `[user@]host[:port]` of a chain of jump hosts. */
const HOP = /^(?:(?<user>[^@]+)@)?(?:\[(?<bracketed>[^\]]+)\]|(?<plain>[^:[\]]+))(?::(?<port>\d{1,5}))?$/;
/** `type base64`, as in a line of known_hosts; no certificate. */
export const HOST_KEY =
  /^(?:ssh-(?:ed25519|rsa)|ecdsa-sha2-nistp(?:256|384|521)|sk-(?:ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com) [A-Za-z0-9+/]{40,4096}={0,2}$/;

/** Why a text cannot be the host of a remote; undefined if it can. */
export function hostFault(host: string): string | undefined {
  const [address = ""] = host.split("%", 1);
  if (isIP(address) !== 0 && /^[0-9a-fA-F.:]+(?:%[A-Za-z0-9._-]+)?$/.test(host)) return undefined;
  return HOST_NAME.test(host) ? undefined : "expected a host name, an IPv4 address or an IPv6 address";
}

/** Whether two hosts are the same remote. */
export function sameHost(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** A jump host as the user wrote it. */
export interface Hop {
  readonly host: string;
  readonly user: string | undefined;
  readonly port: number | undefined;
}

/** The hops of a ProxyJump value, nearest first; undefined if it is not a list of hosts. `none` is an empty list. */
export function parseHops(text: string): Hop[] | undefined {
  if (text === "none") return [];
  const hops: Hop[] = [];
  for (const part of text.replaceAll("ssh://", "").split(",")) {
    const groups = HOP.exec(part.trim())?.groups;
    if (groups === undefined) return undefined;
    const { user, port, bracketed, plain } = groups as Record<string, string | undefined>;
    const host = bracketed ?? plain ?? "";
    const number = port === undefined ? undefined : Number(port);
    // ssh reads this word in a list as the end of the list.
    if (host.toLowerCase() === "none") return undefined;
    if (hostFault(host) !== undefined || (user !== undefined && !USER.test(user))) return undefined;
    if (number !== undefined && (number < 1 || number > 65_535)) return undefined;
    hops.push({ host, user, port: number });
  }
  return hops;
}

/** Remotes have Unix sockets. This host may have pipes. */
const REMOTE = platformOf("linux");

/** Why a path cannot be the socket on a remote host; undefined if it can. */
export function remoteSocketFault(path: string): string | undefined {
  if (Buffer.byteLength(path) > MAX_REMOTE_SOCKET_BYTES) {
    return `must be at most ${MAX_REMOTE_SOCKET_BYTES} bytes long`;
  }
  if (INVISIBLE_CHARACTERS.test(path)) return "must not hold control characters or format characters";
  // ssh would put a variable of this host's environment in its place.
  if (path.includes("${")) return "must not hold ${";
  return targetPathFault(path, REMOTE);
}

/** A text whose fault a function names. */
export const checkedText = (fault: (text: string) => string | undefined) =>
  z.string().superRefine((text, context) => {
    const message = fault(text);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

export const remoteHost = checkedText(hostFault);
export const hostKey = z
  .string()
  .regex(HOST_KEY, { message: "expected a host key such as: ssh-ed25519 AAAA…" });

/** The keys that may be changed after an entry was added, as they stand in the file. */
export const remoteSettings = z.strictObject({
  port: z.int().min(1).max(65_535),
  remote_socket: checkedText(remoteSocketFault),
  enabled: z.boolean(),
  user: z.string().regex(USER, { message: "expected a user name" }),
  proxy_jump: checkedText((text) =>
    parseHops(text) === undefined ? "expected none, or a list of [user@]host[:port]" : undefined,
  ),
  offers: z.array(z.enum(PEER_OFFERS)),
  ...lendingKeys,
} satisfies Readonly<Record<RemoteSetting | "enabled", z.ZodType>>);

const { port, remote_socket, enabled, ...others } = remoteSettings.shape;

/** @param defaultSocket path of the socket in an entry that names none */
function remoteEntry(defaultSocket: string) {
  return z.strictObject({
    host: remoteHost,
    port: port.default(DEFAULT_PORT),
    remote_socket: remote_socket.default(defaultSocket),
    host_key: hostKey.optional(),
    /** Pinned keys of the jump hosts by `host:port`. */
    hop_keys: z.record(z.string().min(1), hostKey).optional(),
    enabled: enabled.default(true),
    ...z.strictObject(others).partial().shape,
  });
}

/** The whole file. @param defaultSocket see {@link defaultRemoteSocket} */
export function remotesSchema(defaultSocket: string) {
  return z
    .strictObject({ remotes: z.array(remoteEntry(defaultSocket)).default([]) })
    .superRefine((file, context) => {
      const hosts = new Set<string>();
      for (const [index, { host }] of file.remotes.entries()) {
        const key = host.toLowerCase();
        if (hosts.has(key)) {
          context.addIssue({
            code: "custom",
            path: ["remotes", index, "host"],
            message: "another entry has this host",
          });
        }
        hosts.add(key);
      }
    });
}

/** Whether two entries of one host need the same connection: only settings of lent tokens may differ. */
export function sameConnection(one: RemoteEntry, other: RemoteEntry): boolean {
  return isDeepStrictEqual(withoutLending(one), withoutLending(other));
}

function withoutLending(entry: RemoteEntry): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(entry).filter(([key, value]) => !(key in lendingKeys) && value !== undefined),
  );
}

/** One remote of ssh.yaml. Durations are milliseconds. */
export type RemoteEntry = z.infer<ReturnType<typeof remoteEntry>>;

/** Path of the socket of this workstation on a remote host, unless the entry says otherwise. @param hostName of this host */
export function defaultRemoteSocket(hostName: string): string {
  const label = (hostName.split(".", 1)[0] ?? "").replaceAll(/[^A-Za-z0-9_-]/g, "-").slice(0, 63);
  return `~/.ssh/${BRAND.folder}.${label === "" ? "workstation" : label}.sock`;
}
