import { duration } from "@devplat/config";
import { z } from "zod";
import { systemPlatform } from "../../platform/platform.ts";
import { entryName } from "./entry-name.ts";
import { mountPath } from "./mount-path.ts";
import { ownSocketOrPipe } from "./own-socket-path.ts";
import { secretFolderPath } from "./secret-folder-path.ts";

/** A certificate is renewed 30 s before its end. A shorter life leaves no time to use it; in milliseconds. */
const MIN_CERTIFICATE_TTL_MS = 60_000;
/** A passphrase that has to be typed again more often is left out by its user; in milliseconds. */
const MIN_KEY_LIFETIME_MS = 60_000;
/** A key that is opened for longer is as good as one without a passphrase; in milliseconds. Timers end at 24 days. */
const MAX_KEY_LIFETIME_MS = 14 * 24 * 3_600_000;
/** The agent behind this variable of the daemon's environment. */
export const SSH_AUTH_SOCK = "SSH_AUTH_SOCK";

/** When the SSH agent asks the user before a signature. */
const confirm = z.enum(["never", "forwarded", "always"]);
/**
 * A pattern of host names, as in ssh_config(5), and before it a pattern of user names, as for `ssh-add -h`. A list in one text
 * would be one pattern that never matches.
 */
const hostPatterns = z
  .array(
    z.string().regex(/^!?(?:[^\s,!]+@)?[^\s,!@]+$/, {
      message: "expected one pattern of host names, such as *.example.com or alice@*.example.com",
    }),
  )
  .min(1)
  .refine((patterns) => patterns.some((each) => !each.startsWith("!")), {
    message: "matches no host, because every pattern begins with '!'",
  });

/**
 * Hosts on the way, one pattern for each. A pattern that rejects hosts has no meaning for one host. The agent does not know
 * the accounts that it is forwarded to.
 */
const wayPatterns = z.array(
  z
    .string()
    .regex(/^[^\s,!@]+$/, { message: "expected one pattern of host names, without '!' and user names" }),
);

/** Keys that every source of keys has. */
const common = {
  hosts: hostPatterns.optional(),
  /** Nearest host first. An empty list: only a login from this host itself. */
  via: wayPatterns.optional(),
  namespaces: z.array(z.string().min(1)).min(1).optional(),
  /** Default: as `agent.confirm`. */
  confirm: confirm.optional(),
};

const keySource = z.discriminatedUnion("source", [
  z.strictObject({
    source: z.literal("kv"),
    name: entryName,
    /** Every secret below this folder that has a `private_key`. */
    path_prefix: secretFolderPath,
    ...common,
  }),
  z.strictObject({
    source: z.literal("ca"),
    name: entryName,
    /** Mount of the SSH secrets engine. */
    mount: mountPath.default("ssh"),
    role: z.string().regex(/^[^/\s]+$/, { message: "expected the name of a role" }),
    /** Templates, one for each principal. */
    principals: z.array(z.string().min(1)).min(1).default(["{{ username }}"]),
    ttl: duration({ min: MIN_CERTIFICATE_TTL_MS }).prefault("15m"),
    /** Extensions with their values, such as `permit-pty: ""`. Default: the role's. */
    extensions: z
      .record(z.string().min(1), z.string())
      // The store takes none as the role's.
      .refine((given) => Object.keys(given).length > 0, {
        message: "must not be empty; without this key the role's extensions apply",
      })
      .optional(),
    key_type: z.enum(["ed25519", "ecdsa", "rsa"]).default("ed25519"),
    ...common,
  }),
  z.strictObject({
    source: z.literal("enrolments"),
    name: entryName.default("enrolments"),
    ...common,
  }),
]);

/** The SSH agent. */
export const sshAgentSection = z
  .strictObject({
    enabled: z.boolean().default(false),
    unix: z.strictObject({ path: ownSocketOrPipe.optional() }).prefault({}),
    confirm: confirm.default("never"),
    /** How long a key with a passphrase stays usable after the passphrase was typed. */
    key_lifetime: duration({ min: MIN_KEY_LIFETIME_MS, max: MAX_KEY_LIFETIME_MS }).prefault("12h"),
    keys: z.array(keySource).prefault([{ source: "enrolments" }]),
    /** Agents whose keys are listed too. */
    relay: z
      .array(
        z
          .union([z.literal(SSH_AUTH_SOCK), ownSocketOrPipe], {
            error: `expected ${SSH_AUTH_SOCK}, or a path from / or ~/`,
          })
          .refine((address) => systemPlatform.hasNamedPipes || !address.startsWith("\\\\"), {
            // Elsewhere it would be a socket in the folder where the daemon was started.
            message: `only Windows has named pipes; set the path of a socket, or ${SSH_AUTH_SOCK}`,
          }),
      )
      .default([]),
    /** Further sockets, each with the keys of some sources only. */
    sockets: z.array(z.strictObject({ path: ownSocketOrPipe, keys: z.array(z.string()).min(1) })).default([]),
  })
  .superRefine((section, context) => {
    for (const { path, message } of conflicts(section)) context.addIssue({ code: "custom", path, message });
  });

export type SshAgentSection = z.infer<typeof sshAgentSection>;
export type SshKeySource = z.infer<typeof keySource>;
export type SshConfirm = z.infer<typeof confirm>;

/** Faults between the keys of the section: names and paths given twice, and names that no source has. */
function conflicts({
  unix,
  keys,
  relay,
  sockets,
}: {
  readonly unix: { readonly path?: string | undefined };
  readonly keys: readonly { readonly name: string }[];
  readonly relay: readonly string[];
  readonly sockets: readonly { readonly path: string; readonly keys: readonly string[] }[];
}): { readonly path: PropertyKey[]; readonly message: string }[] {
  const found: { path: PropertyKey[]; message: string }[] = [];
  const names = new Set<string>();
  for (const [index, { name }] of keys.entries()) {
    if (names.has(name))
      found.push({ path: ["keys", index, "name"], message: "another source has this name" });
    names.add(name);
  }
  const own = new Set(unix.path === undefined ? [] : [unix.path]);
  for (const [index, socket] of sockets.entries()) {
    if (own.has(socket.path))
      found.push({
        path: ["sockets", index, "path"],
        message: "another socket of this section has this path",
      });
    own.add(socket.path);
    for (const [place, name] of socket.keys.entries()) {
      if (names.has(name)) continue;
      const message = `no source of agent.keys has this name; expected one of: ${[...names].join(", ")}`;
      found.push({ path: ["sockets", index, "keys", place], message });
    }
  }
  for (const [index, path] of relay.entries()) {
    if (own.has(path))
      found.push({ path: ["relay", index], message: "is a socket of this SSH agent itself" });
    else if (relay.indexOf(path) < index) found.push({ path: ["relay", index], message: "is given twice" });
  }
  return found;
}
