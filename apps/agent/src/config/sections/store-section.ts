import { z } from "zod";
import { duration } from "@devplat/config";
import { mountPath } from "./mount-path.ts";

/** Vault CLI's own callback port: roles that were made for it work here too. */
const OIDC_CALLBACK_PORT = 8250;
/** A week: long enough that a host which is switched off over holidays still renews in time. */
const REISSUE_BEFORE = "168h";

/** Login methods. With `+tpm` the files on disk are sealed to this host's TPM. The first value is the default. */
const AUTH_METHODS = [
  "token",
  "oidc",
  "ldap",
  "mtls",
  "mtls+tpm",
  "mtls+os",
  "token+tpm",
  "oidc+tpm",
  "ldap+tpm",
] as const;
export type AuthMethod = (typeof AUTH_METHODS)[number];

/** The way in of a method, without its suffix. */
export type LoginKind = "token" | "oidc" | "ldap" | "mtls";

/** The parts of a method's name. */
export function methodParts(method: AuthMethod): {
  readonly kind: LoginKind;
  readonly suffix: "tpm" | "os" | undefined;
} {
  const [kind, suffix] = method.split("+") as [LoginKind, "tpm" | "os" | undefined];
  return { kind, suffix };
}

export const httpUrl = z.string().superRefine((text, context) => {
  const url = URL.parse(text);
  const fault =
    url === null || (url.protocol !== "https:" && url.protocol !== "http:")
      ? "expected an http or https address"
      : url.username !== "" || url.password !== ""
        ? "must not hold a user name or password"
        : undefined;
  if (fault !== undefined) context.addIssue({ code: "custom", message: fault });
});

const file = z.string().min(1);
const socketPattern = z.string().regex(/^(?:~\/|\/)(?:[^*?]*\/)?[^/]+$/, {
  message: "expected a path from / or ~/ with * and ? in its last segment only",
});

/** The token that holds keys under `mtls+os`. */
const pkcs11 = z.strictObject({
  /** The token's own library. */
  module: file,
  /** The token's label. */
  token: z.string().min(1).max(32).default("daemon"),
  /** Holds the user PIN; readable by its owner only. */
  pin_file: file,
  /** OpenSSL's engine of libp11. Default: the folders in which systems keep it. */
  engine: file.optional(),
});
export type Pkcs11Section = z.infer<typeof pkcs11>;

const mtls = z.strictObject({
  bootstrap_method: z.enum(["oidc", "ldap"]).default("oidc"),
  /** Default: the bootstrap method's name. */
  bootstrap_mount: mountPath.optional(),
  cert_mount: mountPath.default("cert"),
  /** The role of the certificate method; unset tries all that match. */
  cert_role: z.string().min(1).optional(),
  pki_mount: mountPath.default("pki"),
  pki_role: z.string().min(1).optional(),
  key_type: z.enum(["ec", "rsa"]).default("ec"),
  /** ec: 256 (default) or 384; rsa: 2048 to 4096 (default 2048). */
  key_bits: z.int().optional(),
  /** Default: the user's name. */
  common_name: z.string().min(1).optional(),
  /** Life of a certificate; unset leaves it to the role. */
  ttl: duration({ min: 60_000 }).optional(),
  reissue_before: duration({ min: 0 }).prefault(REISSUE_BEFORE),
  /** Platform configuration registers of the TPM to which keys are bound. */
  seal_to_pcrs: z.array(z.int().min(0).max(23)).default([]),
  /** Default: `mtls` in the data folder. */
  storage_dir: file.optional(),
  byo: z.strictObject({ cert: file, key: file }).optional(),
  revoke_superseded: z.boolean().default(true),
  /** Required for `mtls+os`. */
  pkcs11: pkcs11.optional(),
});

/** The connection to the secrets store and how to sign in to it. */
export const storeSection = z
  .strictObject({
    driver: z.enum(["vault", "embedded"]).default("vault"),
    address: httpUrl.optional(),
    namespace: z.string().min(1).optional(),
    proxy: httpUrl.optional(),
    ca_cert: file.optional(),
    tls_skip_verify: z.boolean().default(false),
    kv_mount: z.string().min(1).default("kv"),
    user_prefix: z.string().default("users/"),
    username: z.string().min(1).optional(),
    auth_method: z.enum(AUTH_METHODS).default("token"),
    /** The role of the oidc method; unset leaves it to the mount's default role. */
    auth_role: z.string().min(1).optional(),
    /** Default: the method's name. */
    auth_mount: mountPath.optional(),
    oidc_callback_port: z.int().min(1).max(65_535).default(OIDC_CALLBACK_PORT),
    policies: z.array(z.string().min(1)).default([]),
    no_default_policy: z.boolean().default(false),
    disable_token_renewal: z.boolean().default(false),
    token_socket: z.array(socketPattern).default(["~/.ssh/daemon.sock", "~/.ssh/daemon.*.sock"]),
    borrow_only: z.boolean().default(false),
    mtls: mtls.prefault({}),
  })
  .superRefine((store, context) => {
    const fault = (path: (string | number)[], message: string): void =>
      context.addIssue({ code: "custom", path, message });
    if (store.driver === "vault" && store.address === undefined) {
      fault(["address"], "required, but missing (for a store on this host: driver: embedded)");
    }
    const { kind, suffix } = methodParts(store.auth_method);
    if (suffix === "os" && process.platform !== "linux")
      fault(["auth_method"], "mtls+os is built for Linux only");
    if (suffix === "os" && store.mtls.pkcs11 === undefined) {
      fault(["mtls", "pkcs11"], "required for mtls+os, but missing");
    }
    if (suffix === "os" && store.mtls.byo !== undefined) {
      fault(["mtls", "byo"], "has its key in a file, and mtls+os in a token: use mtls");
    }
    if (kind === "mtls") {
      for (const [path, message] of mtlsFaults(store.mtls)) fault(["mtls", path], message);
      if (store.address?.startsWith("http:") === true) {
        fault(["address"], "a client certificate needs an https address");
      }
    }
  });

export type StoreSection = z.infer<typeof storeSection>;
export type MtlsSection = StoreSection["mtls"];

function mtlsFaults(section: z.infer<typeof mtls>): [string, string][] {
  const faults: [string, string][] = [];
  if (section.byo === undefined && section.pki_role === undefined) {
    faults.push(["pki_role", "required, but missing (or bring your own certificate: byo)"]);
  }
  const bits = section.key_bits;
  if (bits !== undefined && !(section.key_type === "ec" ? [256, 384] : [2048, 3072, 4096]).includes(bits)) {
    faults.push([
      "key_bits",
      section.key_type === "ec" ? "ec takes 256 or 384" : "rsa takes 2048, 3072 or 4096",
    ]);
  }
  return faults;
}
