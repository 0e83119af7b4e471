import type { Clock } from "@devplat/base";
import { decodeKnownHosts, type KnownHost } from "@devplat/ssh-protocol";
import { isLoginProgram, type PeerProcess } from "../peer-process/peer-process.ts";
import { commandWords } from "@devplat/base/process-record";
import { literalNames } from "../policy/destination.ts";
import { namesOfHostKey } from "../policy/host-names.ts";
import type { KnownHostsFiles } from "../policy/known-hosts-files.ts";
import type { NamedSession, Origin } from "../policy/permission.ts";
import type { SessionChain } from "../policy/session-chain.ts";

/** Names that a known_hosts line is compared with, taken from one command line. */
const MAX_COMMAND_NAMES = 64;

/** Finds out where requests come from, with the names of the hosts on the way. */
export class HostDirectory {
  readonly #files: KnownHostsFiles;
  readonly #authorities: () => readonly string[];
  readonly #clock: Pick<Clock, "now">;

  /** @param authorities lines of `ssh.certificate_authorities` */
  constructor(files: KnownHostsFiles, authorities: () => readonly string[], clock: Pick<Clock, "now">) {
    this.#files = files;
    this.#authorities = authorities;
    this.#clock = clock;
  }

  /** @param patterns hosts of the keys: a hashed line of known_hosts can only be compared with a name */
  async originOf(
    { sessions, isBroken }: SessionChain,
    caller: PeerProcess | undefined,
    { knownHosts, patterns }: { knownHosts: readonly KnownHost[]; patterns: readonly string[] },
  ): Promise<Origin> {
    if (isBroken) return { kind: "unknown" };
    const [first, ...more] = sessions;
    if (first === undefined) return { kind: isLoginProgram(caller) ? "unknown" : "local" };
    const { hosts: authorities } = decodeKnownHosts(this.#authorities().join("\n"));
    const known = [...knownHosts, ...authorities, ...(await this.#files.lines())];
    const candidates = [...literalNames(patterns), ...(await commandNames(caller))];
    const nowMs = this.#clock.now();
    const named = (session: SessionChain["sessions"][number]): NamedSession => ({
      ...session,
      names: namesOfHostKey(session.hostKey, known, { candidates, nowMs }),
    });
    return { kind: "bound", sessions: [named(first), ...more.map(named)] };
  }
}

/** Words of the client's command line that may be the host's name. Only known_hosts decides whether one is. */
async function commandNames(caller: PeerProcess | undefined): Promise<string[]> {
  if (caller === undefined) return [];
  const words = await commandWords(caller.pid);
  const names = words.flatMap((word) => [word, word.slice(word.lastIndexOf("@") + 1)]);
  const plain = names.map((name) => name.toLowerCase()).filter((name) => /^[\w.:[\]-]+$/.test(name));
  return [...new Set(plain)].slice(0, MAX_COMMAND_NAMES);
}
