import { z } from "zod";

const KEY_TYPE = "(?:ssh-(?:ed25519|rsa)|ecdsa-sha2-nistp(?:256|384|521)|sk-ssh-ed25519@openssh\\.com)";
/** A line of known_hosts that names the authority of some hosts. A hashed name cannot be a pattern. */
const AUTHORITY_LINE = new RegExp(
  `^@cert-authority [^\\s|]+ ${KEY_TYPE} [A-Za-z0-9+/]{40,}={0,2}(?: [^\\r\\n]*)?$`,
);
/** A key alone, as in a line of authorized_keys. */
const BARE_KEY = new RegExp(`^${KEY_TYPE} [A-Za-z0-9+/]{40,}={0,2}(?= |$)`);
/** A program's name, or a path from `/` or `~/`: a relative one would depend on where the daemon was started. */
const COMMAND = /^(?!-)(?:[^/]+|~?\/.*[^/])$/;

/** The line to write in place of one that is not valid. */
function authorityFault(line: unknown): string {
  const [key] = BARE_KEY.exec(String(line)) ?? [];
  return key === undefined
    ? "expected a line of known_hosts such as: @cert-authority *.example.com ssh-ed25519 AAAA…"
    : `names no hosts; write: @cert-authority *.example.com ${key}`;
}

/** Programs and trust of managed SSH forwards. The forwards are in ssh.yaml. */
export const sshSection = z.strictObject({
  /** Connections use the hosts, users, keys and jump hosts of the user's ssh configuration. */
  use_ssh_config: z.boolean().default(true),
  command: z
    .string()
    .regex(COMMAND, { message: "expected the name of a program, or a path from / or ~/" })
    .default("ssh"),
  /** Authorities whose certificates are accepted from the hosts that their lines name. */
  certificate_authorities: z
    .array(z.string().regex(AUTHORITY_LINE, { error: ({ input }) => authorityFault(input) }))
    .default([]),
  insecure_ignore_host_key: z.boolean().default(false),
});
export type SshSection = z.infer<typeof sshSection>;

/** Patterns of an authority's line. */
export function authorityPatterns(line: string): string[] {
  return line.split(" ", 2)[1]?.split(",") ?? [];
}
