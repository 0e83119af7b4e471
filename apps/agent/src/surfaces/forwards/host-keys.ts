import { ifExists } from "@devplat/base";
import {
  decodeKnownHosts,
  decodePublicKeyLine,
  fingerprint,
  isRevoked,
  knownHostName,
  knownHostsOf,
} from "@devplat/ssh-protocol";
import { readFile, rm } from "node:fs/promises";
import type { ConnectionParts } from "./connection.ts";
import type { RemoteEntry } from "./file/remote-entry.ts";
import {
  configuredHosts,
  connectionConfiguration,
  REMOTE_ALIAS,
} from "./openssh/connection-configuration.ts";
import { ConnectionError, failureOf } from "./openssh/failure.ts";
import { knownHostsText, plainKeys } from "./openssh/known-hosts.ts";
import { findRoute, type Route, type RouteHost } from "./openssh/route.ts";

/** The exchange of keys through a chain of hosts, in milliseconds. */
const LEARN_TIMEOUT_MS = 25_000;

/** A key that a host has shown, and that nobody has confirmed. */
export interface OfferedKey {
  /** `host:port` of the host: the remote or one of its jump hosts. */
  readonly host: string;
  readonly type: string;
  /** `SHA256:…`, as ssh-keygen prints it. */
  readonly fingerprint: string;
  /** `type base64` */
  readonly key: string;
  /** The user's known_hosts has exactly this key for the host. */
  readonly known: boolean;
  /** Fingerprint of the key that is pinned for the host now. */
  readonly pinned: string | undefined;
}

/** Result of following a route to its end. */
export type LearnedKeys =
  /** A person has to confirm this key. */
  | { readonly state: "unknown"; readonly offered: OfferedKey }
  /** Every key is confirmed or vouched for by an authority. */
  | {
      readonly state: "trusted";
      readonly host_key: string | undefined;
      readonly hop_keys: Readonly<Record<string, string>>;
    };

export interface LearnParts extends Pick<
  ConnectionParts,
  "ssh" | "folder" | "resolve" | "trust" | "identityAgent"
> {
  /** Paths of the user's and the system's known_hosts. They are shown only, never believed. */
  readonly knownHostsFiles: readonly string[];
}

/** Settings of {@link learnHostKeys}. */
export interface LearnOptions {
  /**
   * Fingerprints that a person has confirmed, each for one host: with its own key, which is confirmed, a jump host must not
   * be able to answer in place of the hosts behind it.
   */
  readonly accepted: readonly string[];
  /** Keys that are pinned are asked for again. */
  readonly again: boolean;
}

/**
 * Asks each host on the way to a remote for its key, the nearest first. The connection that asks cannot authenticate at
 * that host, and verifies the hosts before it.
 *
 * @throws ConnectionError | ForwardError
 */
export async function learnHostKeys(
  parts: LearnParts,
  entry: RemoteEntry,
  { accepted, again }: LearnOptions,
  signal: AbortSignal,
): Promise<LearnedKeys> {
  await parts.folder.prepare();
  const route = await findRoute(entry, parts.resolve);
  const pins: (string | undefined)[] = [];
  const left = [...accepted];
  for (const [index, host] of route.entries()) {
    const pinned = index === route.length - 1 ? entry.host_key : entry.hop_keys?.[host.keyName];
    if (pinned !== undefined && !again) {
      pins.push(pinned);
      continue;
    }
    const key = await offeredKey(parts, entry, route.slice(0, index + 1), pins, signal);
    const offered = key === undefined ? undefined : await describe(parts, host, key, pinned);
    if (offered !== undefined) {
      const confirmed = left.indexOf(offered.fingerprint);
      if (confirmed === -1) return { state: "unknown", offered };
      left.splice(confirmed, 1);
    }
    pins.push(key);
  }
  const hops = route.slice(0, -1).flatMap(({ keyName }, index) => {
    const pin = pins[index];
    return pin === undefined ? [] : [[keyName, pin]];
  });
  return {
    state: "trusted",
    host_key: pins.at(-1),
    hop_keys: Object.fromEntries(hops) as Record<string, string>,
  };
}

/** The key of the last host; undefined if an authority vouches for it. */
async function offeredKey(
  { ssh, folder, trust, identityAgent }: LearnParts,
  entry: RemoteEntry,
  route: readonly RouteHost[],
  pins: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const paths = folder.paths(entry.host);
  // Not the files of a forward to the same host, which may be up.
  const fileOf = (index: number): string => `${paths.record}.${index}`;
  const configuration = `${paths.record}.conf`;
  const last = route.length - 1;
  const { authorities } = trust();
  try {
    const texts = route.map(({ hostName }, index) =>
      knownHostsText(hostName, { pin: pins[index], authorities }),
    );
    for (const [index, text] of texts.entries()) await folder.write(fileOf(index), text);
    const agent = await identityAgent(entry, {
      userAgent: route[last]?.identityAgent,
      knownHosts: texts.join(""),
    });
    const hosts = configuredHosts(route as unknown as Route, (_, index) => ({
      knownHostsFile: fileOf(index),
      hostKey: index === last ? "learn" : "verify",
    }));
    await folder.write(configuration, connectionConfiguration({ hosts, identityAgent: agent }));
    const args = ["-F", configuration, "-N", "-T", "--", REMOTE_ALIAS];
    const { stderr, timedOut } = await ssh.run(args, LEARN_TIMEOUT_MS, signal);
    signal.throwIfAborted();
    const [key] = plainKeys(await readFile(fileOf(last), "utf8"));
    if (key !== undefined) return key;
    const failure = failureOf(stderr, timedOut ? "timeout" : "handshake");
    // The host's key was accepted without being written down: an authority has signed it.
    const isHop = !stderr.includes(`${route[last]?.hostName}: Permission denied`) && last > 0;
    if (failure.class === "authentication" && !isHop) return undefined;
    throw new ConnectionError(failure);
  } finally {
    const files = [configuration, ...route.map((_, index) => fileOf(index))];
    await Promise.all(
      files.flatMap((path) => [rm(path, { force: true }), rm(`${path}.old`, { force: true })]),
    );
  }
}

async function describe(
  { knownHostsFiles }: LearnParts,
  { hostName, port, keyName }: RouteHost,
  key: string,
  pinned: string | undefined,
): Promise<OfferedKey> {
  const { type, blob } = decodePublicKeyLine(key);
  const texts = await Promise.all(
    knownHostsFiles.map((path) => ifExists(readFile(path, "utf8")).catch(() => undefined)),
  );
  const hosts = texts.flatMap((text) => (text === undefined ? [] : decodeKnownHosts(text).hosts));
  if (isRevoked(hosts, blob)) {
    throw new ConnectionError({
      class: "host-key",
      message: `The key of ${keyName} is revoked in known_hosts`,
    });
  }
  const lines = knownHostsOf(hosts, knownHostName({ host: hostName, port }));
  return {
    host: keyName,
    type,
    fingerprint: fingerprint(blob),
    key,
    known: lines.some((line) => line.marker === undefined && line.blob.equals(blob)),
    pinned: pinned === undefined ? undefined : fingerprint(decodePublicKeyLine(pinned).blob),
  };
}
