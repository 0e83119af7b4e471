import { duration } from "@devplat/config";
import { z } from "zod";

/** A child token that lives shorter would be renewed all the time; one that lives longer outlasts a working day. In milliseconds. */
const MIN_TOKEN_TTL_MS = 5000;
const MAX_TOKEN_TTL_MS = 24 * 3_600_000;
/** Maximum length of the name of a policy, in characters. */
const MAX_POLICY_NAME = 256;

/** How the store token is lent to another host: keys of `api.peer`, and of a remote in ssh.yaml. */
export const lendingKeys = {
  /** `own`: the daemon's own token instead of a child token. */
  lend: z.enum(["child", "own"]),
  /** Policies of a child token. */
  policies: z.array(
    z
      .string()
      .min(1)
      .max(MAX_POLICY_NAME)
      .regex(/^\P{Cc}+$/u, { message: "must not hold control characters" }),
  ),
  /** Nothing is lent if the store adds other policies. */
  policies_strict: z.boolean(),
  token_ttl: duration({ min: MIN_TOKEN_TTL_MS, max: MAX_TOKEN_TTL_MS }),
  /** Whether the user is asked before a token is lent: never, once for each connection, or each time. */
  ask: z.enum(["never", "first", "always"]),
};

/** A duration is milliseconds. */
export type LendingKeys = {
  readonly [Key in keyof typeof lendingKeys]?: z.infer<(typeof lendingKeys)[Key]> | undefined;
};
