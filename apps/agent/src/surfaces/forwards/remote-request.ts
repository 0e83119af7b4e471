import { z } from "zod";
import { checkedText, hostKey, remoteHost, remoteSettings, remoteSocketFault } from "./file/remote-entry.ts";

/*
 * Bodies of requests that add and change remotes. Null takes the default of a key again, as do the port 0 and an empty
 * remote_socket.
 */

/** Maximum fingerprints in one request: a host and a long chain of jump hosts. */
const MAX_FINGERPRINTS = 20;

const { port: _port, remote_socket: _socket, ...others } = remoteSettings.shape;

const settings = {
  port: z
    .int()
    .min(0)
    .max(65_535)
    .nullable()
    .describe("0: the default, 22")
    .transform((port) => (port === 0 ? null : port))
    .optional(),
  remote_socket: checkedText((text) => (text === "" ? undefined : remoteSocketFault(text)))
    .nullable()
    .describe("Absolute, or begins with ~/. Empty: the default")
    .transform((path) => (path === "" ? null : path))
    .optional(),
  ...resettable(others),
};

const fingerprint = z
  .string()
  .regex(/^SHA256:[A-Za-z0-9+/]{43}$/, { message: "expected a fingerprint such as SHA256:…" });
const acceptFingerprint = z
  .union([fingerprint, z.array(fingerprint).max(MAX_FINGERPRINTS)])
  .describe(
    "Fingerprints that a person has confirmed, one for each host on the way, the same one twice if need be",
  )
  .optional();

/** Each key may be missing, which keeps it, or null. */
function resettable<Shape extends Readonly<Record<string, z.ZodType>>>(
  shape: Shape,
): { [Key in keyof Shape]: z.ZodOptional<z.ZodNullable<Shape[Key]>> } {
  const entries = Object.entries(shape).map(([key, type]) => [key, type.nullable().optional()]);
  return Object.fromEntries(entries) as { [Key in keyof Shape]: z.ZodOptional<z.ZodNullable<Shape[Key]>> };
}

/** Changes of a remote. */
export const remoteEditBody = z.strictObject(settings);

export const newRemoteBody = z.strictObject({
  host: remoteHost,
  ...settings,
  host_key: hostKey
    .optional()
    .describe("Key to pin, as in a line of known_hosts; the host is not asked for one"),
  accept_fingerprint: acceptFingerprint,
  force: z.boolean().optional().describe("Save the remote without a connection"),
});

export const repinBody = z.strictObject({ accept_fingerprint: acceptFingerprint });

export const consentBody = z.strictObject({ allowed: z.boolean() });

/** Body of a request that carries nothing. */
export const emptyBody = z.strictObject({});

/** The confirmed fingerprints of a body. */
export function acceptedOf(given: z.infer<typeof acceptFingerprint>): readonly string[] {
  return typeof given === "string" ? [given] : (given ?? []);
}
