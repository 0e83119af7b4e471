import { messageOf } from "@devplat/base";
import { checkPath } from "@devplat/secret-store";
import { z } from "zod";
import { secretPath } from "./secret-path.ts";
import { httpUrl } from "./store-section.ts";

/** The key space of enrolments is one folder deep: flat, or grouped exactly once. */
const MAX_SEGMENTS = 2;

/** Keys that every engine has. The setup wizard is not shown for `optional` enrolments. */
const common = { description: z.string().default("") };
const scopes = z.array(z.string().min(1)).default([]);
const text = z.string().min(1);

const engines = z.discriminatedUnion("engine", [
  z.strictObject({
    engine: z.literal("copy"),
    ...common,
    /** Path of the secret to mirror. */
    from: secretPath,
    /** Field name → template over the source's fields; none copies all fields. */
    fields: z.record(text, z.string()).optional(),
  }),
  z.strictObject({
    engine: z.literal("ssh"),
    ...common,
    passphrase: z.enum(["required", "recommended", "unsafe"]).default("required"),
    comment: z
      .string()
      .max(200)
      .regex(/^[^\r\n\0]*$/)
      .optional(),
  }),
  z.strictObject({
    engine: z.literal("prompt"),
    ...common,
    fields: z
      .array(
        z.strictObject({
          name: text,
          help: z.string().default(""),
          secret: z.boolean().default(true),
          optional: z.boolean().default(false),
          /** The whole value must match this regular expression. */
          pattern: z.string().optional(),
        }),
      )
      .min(1),
  }),
  z.strictObject({
    engine: z.literal("github"),
    ...common,
    host: httpUrl.default("https://github.com"),
    client_id: text,
    scopes,
  }),
  z.strictObject({
    engine: z.literal("svc"),
    ...common,
    url: httpUrl,
    client_id: text.default("agent"),
    scopes,
  }),
  z.strictObject({
    engine: z.literal("oauth-device"),
    ...common,
    device_url: httpUrl,
    token_url: httpUrl,
    client_id: text,
    scopes,
    audience: text.optional(),
  }),
  z.strictObject({
    engine: z.literal("oauth-pkce"),
    ...common,
    authorize_url: httpUrl,
    token_url: httpUrl,
    client_id: text,
    scopes,
    audience: text.optional(),
    /** Port of the loopback address that the browser returns to. 0 takes any free port (RFC 8252 section 7.3). */
    callback_port: z.int().min(0).max(65_535).default(0),
  }),
  z.strictObject({ engine: z.literal("databricks"), ...common, host: httpUrl, scopes }),
  z.strictObject({ engine: z.literal("jfrog"), ...common, url: httpUrl }),
]);

/** Enrolments by the key under which their credential is stored. */
export const enrolmentsSection = z.record(z.string(), engines).superRefine((enrolments, context) => {
  for (const [key, enrolment] of Object.entries(enrolments)) {
    const fault = (message: string, ...path: (string | number)[]): void =>
      context.addIssue({ code: "custom", path: [key, ...path], message });
    try {
      checkPath(key);
    } catch (error) {
      fault(messageOf(error));
    }
    if (key.split("/").length > MAX_SEGMENTS) fault("a key is flat or grouped once: name or group/name");
    if (enrolment.engine === "copy" && enrolment.from === key)
      fault("must not be the enrolment itself", "from");
    if (enrolment.engine !== "prompt") continue;
    for (const [index, { pattern }] of enrolment.fields.entries()) {
      if (pattern !== undefined && !isPattern(pattern)) {
        fault("not a regular expression", "fields", index, "pattern");
      }
    }
  }
});

export type EnrolmentConfig = z.infer<typeof engines>;

function isPattern(source: string): boolean {
  try {
    return new RegExp(source, "u").source !== "";
  } catch {
    return false;
  }
}
