import { z } from "zod";
import { GIT_HOST_PATTERN } from "./git-host.ts";
import { mountpointPath } from "./mountpoint-path.ts";
import { ownSocketOrPipe } from "./own-socket-path.ts";
import { lendingKeys } from "./lending.ts";
import { PEER_OFFERS } from "./peer-offers.ts";
import { duration } from "@devplat/config";
import { MAX_CACHE_TTL_MS } from "./docker-section.ts";
import { httpUrl } from "./store-section.ts";

/** The switch of a surface that this version does not have: turning it on must not look as if it worked. */
const notYet = z
  .boolean()
  .meta({ const: false })
  .refine((on) => !on, { message: "not built yet in this version: only false" })
  .default(false);

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

/** Exporting OpenTelemetry is not worth doing more often than this, in milliseconds. */
const MIN_EXPORT_INTERVAL_MS = 10_000;

/** Figures and traces by OpenTelemetry's OTLP. */
export const observabilitySection = z.strictObject({
  enabled: notYet,
  /** Address of the collector, to which the paths `/v1/metrics` and `/v1/traces` are added. */
  endpoint: httpUrl.optional(),
  protocol: z.enum(["http/protobuf", "http/json"]).default("http/protobuf"),
  headers: z.record(z.string().min(1), z.string()).default({}),
  service_name: z.string().min(1).default("agent"),
  interval: duration({ min: MIN_EXPORT_INTERVAL_MS }).prefault("1m"),
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
