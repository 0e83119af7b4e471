import { z } from "zod";

/*
 * The SSH agent as the JSON API, `/ui/agent/` and `agent status --json` show it. Never a private key or a passphrase.
 */

const time = z.string().meta({ format: "date-time" });
const text = z.string();
const count = z.int().nonnegative();

export const agentIdentitySchema = z
  .object({
    comment: text,
    path: text
      .nullable()
      .describe("Path of its secret; null for a certificate and for a key of another agent"),
    type: text.describe("Such as ssh-ed25519"),
    fingerprint: text.describe("`SHA256:…`"),
    state: z.enum(["ready", "needs-passphrase", "unlocked", "locked", "hidden"]),
    certificate_expires_at: time.nullable(),
    unlocked_until: time.nullable().describe("Of a key with a passphrase"),
    hosts: z.array(text).nullable(),
    via: z.array(text).nullable(),
    namespaces: z.array(text).nullable(),
    last_use: z
      .object({ at: time, destination: text.nullable(), forwarded: z.boolean(), program: text.nullable() })
      .nullable(),
    signatures: count.describe("Since the daemon started"),
  })
  .meta({ id: "SshAgentIdentity" });

export const sshAgentStatusSchema = z
  .object({
    socket: text,
    sockets: z.array(text).describe("All sockets, the first one above included"),
    socket_problems: z
      .array(z.object({ socket: text, reason: text }))
      .describe("Sockets that could not be opened; a reload tries again"),
    locked: z.boolean(),
    sources: z.array(
      z.object({
        name: text,
        source: z.enum(["kv", "ca", "enrolments", "relay"]),
        error: text.nullable(),
        identities: z.array(agentIdentitySchema),
      }),
    ),
    signatures: z.object({ signed: count, refused: count }).describe("By outcome, since the daemon started"),
    withheld: count.describe("Keys with 'hosts' not offered to a client that sent no session-bind"),
    refusals: z
      .array(z.object({ at: time, fingerprint: text, reason: text }))
      .describe("The last ones, newest first"),
    questions: z
      .array(
        z.object({
          id: text,
          kind: z.enum(["confirm", "passphrase"]),
          identity: text.describe("Comment of the key"),
          fingerprint: text,
          facts: z.array(z.object({ text: text, verified: z.boolean() })),
          asked_at: time,
          expires_at: time,
        }),
      )
      .describe("Questions that wait for the user"),
  })
  .meta({ id: "SshAgentStatus" });
export type SshAgentStatus = z.infer<typeof sshAgentStatusSchema>;
export type SshAgentIdentityView = z.infer<typeof agentIdentitySchema>;
