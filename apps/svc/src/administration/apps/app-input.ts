import { Secret } from "@devplat/base";
import { z } from "zod";
import { validateBody } from "../../http/request/validation.ts";

/** A 16384-bit key in PEM has 12 KB. */
const MAX_KEY = 16 * 1024;
/** Characters of a webhook secret. */
const MAX_SECRET = 500;

const secret = z.string().min(1).max(MAX_SECRET);
const privateKey = z.string().min(1).max(MAX_KEY).meta({
  description: "PEM, as the code host gives it; tried out before it is kept, and never shown",
});

export const appRequestSchema = z
  .strictObject({
    app_id: z
      .string()
      .regex(/^\d{1,20}$/, "must be the number that the code host shows")
      .meta({ description: "The code host's id of the app" }),
    private_key: privateKey,
    webhook_secret: secret.nullable().optional(),
    is_default: z.boolean().optional().meta({ description: "Default: only for the first app" }),
  })
  .meta({ id: "AppRequest" });

export const appChangeSchema = z
  .strictObject({
    private_key: privateKey.optional(),
    webhook_secret: secret.nullable().optional().meta({ description: "null removes it" }),
    is_default: z.literal(true).optional().meta({ description: "Takes it from the app that has it" }),
  })
  .meta({ id: "AppChange" });

/** @throws FieldError, ProblemError */
export function readNewApp(input: unknown) {
  const body = validateBody(appRequestSchema, input);
  return {
    appId: body.app_id,
    privateKey: new Secret(body.private_key),
    webhookSecret: typeof body.webhook_secret === "string" ? new Secret(body.webhook_secret) : undefined,
    isDefault: body.is_default ?? false,
  };
}

/** A webhook secret of null removes it. @throws FieldError, ProblemError */
export function readAppChange(input: unknown) {
  const body = validateBody(appChangeSchema, input);
  const { private_key: key, webhook_secret: hook, is_default: isDefault } = body;
  return {
    privateKey: key === undefined ? undefined : new Secret(key),
    webhookSecret: typeof hook === "string" ? new Secret(hook) : hook,
    isDefault,
  };
}

/** The form that begins a registration. The limits are the code host's. */
const manifestRequestSchema = z.strictObject({
  name: z
    .string()
    .trim()
    .regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,33}$/, "up to 34 letters, digits, blanks, dots and dashes"),
  owner: z
    .string()
    .trim()
    .regex(/^(?:[A-Za-z0-9][A-Za-z0-9-]{0,38})?$/, "must be the login of an organization"),
});

/** @throws FieldError, ProblemError */
export function readManifestRequest(input: unknown): { name: string; owner: string | undefined } {
  const { name, owner } = validateBody(manifestRequestSchema, input);
  return { name, owner: owner === "" ? undefined : owner };
}
