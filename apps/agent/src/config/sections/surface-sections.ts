import { z } from "zod";
import { GIT_HOST_PATTERN } from "./git-host.ts";
import { mountpointPath } from "./mountpoint-path.ts";
import { ownSocketOrPipe } from "./own-socket-path.ts";
import { lendingKeys } from "./lending.ts";
import { PEER_OFFERS } from "./peer-offers.ts";
import { duration } from "@devplat/config";
import { MAX_CACHE_TTL_MS } from "./docker-section.ts";

/** The local API's sockets. */
export const apiSection = z.strictObject({
  enabled: z.boolean().default(false),
  unix: z.strictObject({ path: ownSocketOrPipe.optional() }).prefault({}),
  peer: z
    .strictObject({
      /** Default: as `api.enabled`. */
      enabled: z.boolean().optional(),
      path: ownSocketOrPipe.optional(),
      /** Default: all. */
      offers: z.array(z.enum(PEER_OFFERS)).default([...PEER_OFFERS]),
      lend: lendingKeys.lend.default("child"),
      /** Default: those of the daemon's own token. */
      policies: lendingKeys.policies.optional(),
      policies_strict: lendingKeys.policies_strict.default(false),
      token_ttl: lendingKeys.token_ttl.prefault("15m"),
      ask: lendingKeys.ask.default("never"),
    })
    .prefault({}),
});

/** The filesystem mount; the one section that a user's overlay may hold. */
export const fuseSection = z.strictObject({
  enabled: z.boolean().default(false),
  mountpoint: mountpointPath.default("~/.daemon"),
  read_write: z.boolean().default(false),
  layout: z.enum(["json", "both"]).default("json"),
  cache_ttl: duration({ max: MAX_CACHE_TTL_MS }).prefault("30s"),
});

/** The credential that `agent git-credential` gives for a host. */
export const gitCredential = z.strictObject({
  host: z.string().regex(GIT_HOST_PATTERN, {
    message: "expected a host name, such as git.example.com, git.example.com:8443 or *.example.com",
  }),
  key: z.string().min(1),
  username_field: z.string().min(1).default("username"),
  password_field: z.string().min(1).default("password"),
});

export type ApiSection = z.infer<typeof apiSection>;
export type GitCredential = z.infer<typeof gitCredential>;
