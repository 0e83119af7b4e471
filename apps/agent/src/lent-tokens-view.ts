import { z } from "zod";

/** ISO 8601. */
const time = z.string().meta({ format: "date-time" });

/** Tokens that one host has borrowed, as the JSON API, the pages and the command line show them. Never a token or an accessor. */
export const lentTokensSchema = z
  .object({
    lent: z.array(
      z.object({
        created_at: time,
        expires_at: time,
        last_used_at: time.nullable().describe("When it was handed out last"),
        handouts: z.int().nonnegative(),
      }),
    ),
    added_policies: z.array(z.string()).describe("Policies that the store adds to every lent token"),
    problem: z.string().nullable().describe("Why nothing could be lent at the last request"),
    asking: z.boolean().describe("The user is being asked for consent"),
  })
  .meta({ id: "LentTokens" });
export type LentTokensView = z.infer<typeof lentTokensSchema>;
