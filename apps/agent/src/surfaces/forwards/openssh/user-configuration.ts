import { visible } from "@devplat/base/terminal";
import { ForwardError } from "../errors/forward-error.ts";
import { hostFault } from "../file/remote-entry.ts";
import { messageLine } from "./failure.ts";
import type { SshProgram } from "./ssh-program.ts";

/** A `Match exec` of the user's configuration runs a program. In milliseconds. */
const QUERY_TIMEOUT_MS = 10_000;
/** Keys that ssh tries when the user names none. They are left out, so that ssh does not complain about each missing one. */
const DEFAULT_KEY = /^~\/\.ssh\/id_(?:rsa|dsa|ecdsa|ecdsa_sk|ed25519|ed25519_sk|xmss)$/;

/** How to reach one host, and with which keys. Paths have ssh's tokens and `~` in them. */
export interface ResolvedHost {
  readonly hostName: string;
  readonly user: string | undefined;
  readonly port: number;
  readonly identityFiles: readonly string[];
  readonly certificateFiles: readonly string[];
  readonly identityAgent: string | undefined;
  readonly identitiesOnly: boolean;
  readonly proxyJump: string | undefined;
  readonly proxyCommand: string | undefined;
}

export interface HostQuery {
  /** Name as the user wrote it. */
  readonly host: string;
  readonly user: string | undefined;
  readonly port: number | undefined;
}

/** Gives {@link ResolvedHost}s. */
export type ResolveHost = (query: HostQuery) => Promise<ResolvedHost>;

/** Asks `ssh -G`: the user's configuration is read by ssh alone, and never given to a connection. */
export function userConfiguration(ssh: Pick<SshProgram, "run">): ResolveHost {
  return async ({ host, user, port }) => {
    const given = [
      ...(user === undefined ? [] : ["-l", user]),
      ...(port === undefined ? [] : ["-p", String(port)]),
    ];
    const { code, stdout, stderr, timedOut } = await ssh.run(["-G", ...given, "--", host], QUERY_TIMEOUT_MS);
    if (timedOut) throw refused(host, "'ssh -G' did not end in time", "Look at its Match exec lines.");
    if (code !== 0) {
      const lines = stderr.trim().split("\n");
      throw refused(host, messageLine(lines.at(-2) ?? lines.at(-1) ?? ""), `Run 'ssh -G ${host}'.`);
    }
    return parseAnswer(host, stdout);
  };
}

/** Without the user's configuration: what ssh does by default. */
export const defaultConfiguration: ResolveHost = async ({ host, user, port }) => ({
  hostName: host,
  user,
  port: port ?? 22,
  identityFiles: [],
  certificateFiles: [],
  identityAgent: undefined,
  identitiesOnly: false,
  proxyJump: undefined,
  proxyCommand: undefined,
});

function parseAnswer(host: string, answer: string): ResolvedHost {
  const values = new Map<string, string[]>();
  for (const line of answer.split("\n")) {
    const [key = ""] = line.split(" ", 1);
    const value = line.slice(key.length + 1);
    values.set(key, [...(values.get(key) ?? []), value]);
  }
  const one = (key: string): string | undefined => {
    const value = values.get(key)?.[0];
    return value === "" || value === "none" ? undefined : value;
  };
  const hostName = one("hostname") ?? host;
  const fault = hostFault(hostName);
  if (fault !== undefined)
    throw refused(host, `HostName ${visible(hostName)}: ${fault}`, `Run 'ssh -G ${host}'.`);
  const identityFiles = values.get("identityfile") ?? [];
  return {
    hostName,
    user: one("user"),
    port: Number(one("port") ?? 22),
    identityFiles: identityFiles.every((path) => DEFAULT_KEY.test(path)) ? [] : identityFiles,
    certificateFiles: values.get("certificatefile") ?? [],
    // `none` has a meaning of its own here.
    identityAgent: values.get("identityagent")?.[0],
    identitiesOnly: one("identitiesonly") === "yes",
    proxyJump: one("proxyjump"),
    proxyCommand: one("proxycommand"),
  };
}

function refused(host: string, reason: string, hint: string): ForwardError {
  return new ForwardError("configuration_refused", `Cannot use the ssh configuration of ${host}: ${reason}`, {
    hint,
  });
}
