import { z } from "zod";
import { duration } from "./duration.ts";

/** A mount or volume that caches longer than this shows credentials that have been replaced; in milliseconds. */
const MAX_CACHE_TTL_MS = 10 * 60_000;

/** The switch of a surface that this version does not have: turning it on must not look as if it worked. */
const notYet = z
  .boolean()
  .refine((on) => !on, { message: "not built yet in this version: only false" })
  .default(false);

const path = z.string().min(1);
const socket = z.strictObject({ path: path.optional() }).prefault({});

/** The local API's sockets. */
export const apiSection = z.strictObject({
  enabled: notYet,
  unix: socket,
  peer: z
    .strictObject({
      /** Default: as `api.enabled`. */
      enabled: z.boolean().optional(),
      path: path.optional(),
      offers: z
        .array(z.enum(["token", "browse", "notify", "clipboard"]))
        .default(["token", "browse", "notify", "clipboard"]),
    })
    .prefault({}),
});

/** The filesystem mount; the one section that a user's overlay may hold. */
export const fuseSection = z.strictObject({
  enabled: notYet,
  mountpoint: path.default("~/.daemon"),
  read_write: z.boolean().default(false),
  layout: z.enum(["json", "both"]).default("json"),
  cache_ttl: duration({ max: MAX_CACHE_TTL_MS }).prefault("30s"),
});

/** The container-volume plugin. */
export const dockerSection = z.strictObject({
  enabled: notYet,
  socket: path.optional(),
  volume_dir: path.optional(),
  cache_ttl: duration({ max: MAX_CACHE_TTL_MS }).prefault("1m"),
});

/** The SSH agent. */
export const sshAgentSection = z.strictObject({
  enabled: notYet,
  unix: socket,
  keys: z.array(path).default([]),
  relay: z.array(path).default([]),
});

/** What `agent git-credential` answers for a host. */
export const gitCredential = z.strictObject({
  host: z
    .string()
    .regex(/^[A-Za-z0-9.*-]+(:\d{1,5})?$/, { message: "expected a host name, such as git.example.com" }),
  key: z.string().min(1),
  username_field: z.string().min(1).default("username"),
  password_field: z.string().min(1).default("password"),
});

export type FuseSection = z.infer<typeof fuseSection>;
export type GitCredential = z.infer<typeof gitCredential>;
