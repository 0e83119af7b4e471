import { z } from "zod";
import { PEER_OFFERS } from "./config/sections/peer-offers.ts";
import { lentTokensSchema } from "./lent-tokens-view.ts";

/*
 * A remote (managed SSH forward) as the JSON API, the pages, `agent status --json` and `agent ssh list --json` show it.
 * Never a token, an accessor or a private key.
 */

/** ISO 8601. */
const time = z.string().meta({ format: "date-time" });
const text = z.string();

/** The phases of a forward as people see them. */
export const REMOTE_STATES = [
  "disabled",
  "connecting",
  "reconnecting",
  "connected",
  "offline",
  "authentication-error",
  "host-key-error",
] as const;

/** A public key of a host. */
export const hostKeySchema = z
  .object({
    type: text,
    fingerprint: text.describe("`SHA256:…`, as ssh-keygen prints it"),
    key: text.describe("Type and base64, as in a line of known_hosts"),
  })
  .meta({ id: "HostKey" });

/** A key that a host has shown and that nobody has confirmed. */
export const offeredKeySchema = z
  .object({
    host: text.describe("`host:port` of the remote or of one of its jump hosts"),
    ...hostKeySchema.shape,
    known: z.boolean().describe("The user's known_hosts has exactly this key for the host"),
    pinned: text.nullable().describe("Fingerprint of the key that is pinned for the host now"),
  })
  .meta({ id: "OfferedHostKey" });
export type OfferedKeyView = z.infer<typeof offeredKeySchema>;

export const remoteViewSchema = z
  .object({
    host: text,
    port: z.int(),
    remote_socket: text.describe("As written in ssh.yaml"),
    remote_socket_expanded: text.nullable().describe("Without `~`; null before the first connection"),
    enabled: z.boolean(),
    user: text.nullable(),
    proxy_jump: text.nullable(),
    offers: z.array(z.enum(PEER_OFFERS)).describe("What the remote host may ask for"),
    policies: z.array(text).nullable().describe("Of lent tokens; null: those of the daemon's own token"),
    policies_strict: z.boolean(),
    token_ttl: text.describe("A duration such as 15m"),
    ask: z.enum(["never", "first", "always"]),
    lend: z.enum(["child", "own"]),
    state: z.enum(REMOTE_STATES),
    proven: z.boolean().describe("The remote socket was seen to lead to this host"),
    error: z
      .object({ class: text, message: text, advice: text })
      .nullable()
      .describe("Why the forward is not up"),
    since: time.describe("Begin of the state"),
    next_attempt_at: time.nullable(),
    reconnects: z.int().nonnegative(),
    host_key: hostKeySchema.nullable().describe("The pinned key"),
    hop_keys: z
      .array(z.object({ host: text.describe("`host:port` of the jump host"), ...hostKeySchema.shape }))
      .describe("The pinned keys of jump hosts, nearest first"),
    trust: z.enum(["pin", "ca", "none"]).describe("By what the host's key is accepted"),
    tokens: lentTokensSchema,
  })
  .meta({ id: "Remote" });
export type RemoteView = z.infer<typeof remoteViewSchema>;
export type RemoteState = RemoteView["state"];
