import { z } from "zod";
import { BOUNDS } from "../../config/defaults.ts";
import { RESOURCES } from "../../scopes/scopes.ts";
import { ALONGSIDE_FIELDS, MISSING } from "../../http/request/validation.ts";

/** Most repositories of one token; each is checked at the code host. */
const MAX_REPOSITORIES = 100;
/** Characters of a text that the caller gives. */
const MAX_TEXT = 500;
/** As tokens.requests_per_minute. */
const MAX_REQUESTS_PER_MINUTE = BOUNDS.requestsPerMinute.max;

const repository = z.string().min(1).max(201);

/** A new proxy or agent token. */
export const tokenRequestSchema = z
  .strictObject({
    repository: repository.optional().meta({ description: "<owner>/<repo>", example: "acme/widgets" }),
    repositories: z.array(repository).min(1).max(MAX_REPOSITORIES).optional().meta({
      description: "Several, in the place of `repository`",
    }),
    scopes: z
      .string()
      .min(1)
      .max(2000)
      .meta({
        description: `Comma-separated <resource>:<level>; levels read and write; resources ${RESOURCES.join(", ")}`,
        example: "contents:read",
      }),
    duration: z.string().min(1).max(50).meta({
      description:
        "Lifetime: numbers with a unit s, m, h, d or w, compound allowed; at least 60s. `never` where that is allowed",
      example: "1h",
    }),
    type: z.enum(["proxy", "agent"]).optional().meta({ description: "Default proxy" }),
    app_id: z.string().min(1).max(MAX_TEXT).optional().meta({
      description: "Agent tokens: id of a registered app; default the default app",
    }),
    installation: z.string().min(1).max(MAX_TEXT).optional().meta({
      description:
        "Agent tokens: the account that the app is installed for, default the owner of the repositories",
    }),
    session_id: z.string().min(1).max(MAX_TEXT).optional().meta({
      description: "The caller's own label for the run that it is for",
    }),
    description: z.string().max(MAX_TEXT).optional(),
    ip_allow: z.array(z.string()).max(MAX_REPOSITORIES).optional().meta({
      description: "Addresses and networks that may use it; default every one",
    }),
    requests_per_minute: z.int().min(1).max(MAX_REQUESTS_PER_MINUTE).optional().meta({
      description: "Requests a minute, git and API together; tokens.requests_per_minute limits it, too",
    }),
  })
  .superRefine((body, context) => {
    if (body.repository === undefined && body.repositories === undefined) {
      context.addIssue({ code: "custom", path: ["repository"], message: MISSING });
    }
    if (body.type === "agent") return;
    for (const field of ["app_id", "installation"] as const) {
      if (body[field] === undefined) continue;
      context.addIssue({ code: "custom", path: [field], message: "is for agent tokens only" });
    }
  }, ALONGSIDE_FIELDS)
  .meta({ id: "TokenRequest" });
export type TokenRequest = z.output<typeof tokenRequestSchema>;

/** A token, by its value. */
export const tokenValueSchema = z
  .strictObject({ token: z.string().min(1).max(MAX_TEXT) })
  .meta({ id: "TokenValue" });

/** An administration token to be made. */
export const adminTokenRequestSchema = z
  .strictObject({
    name: z.string().trim().min(1).max(100).meta({ description: "For lists and the audit trail" }),
    duration: z.string().min(1).max(50).meta({
      description: "Lifetime: numbers with a unit s, m, h, d or w, compound allowed; at least 60s",
      example: "90d",
    }),
  })
  .meta({ id: "AdminTokenRequest" });
