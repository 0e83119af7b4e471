import { messageOf } from "@devplat/base";
import { boundedRequest } from "@devplat/http-client";
import type { Config } from "../../config/schema.ts";

/** Milliseconds that the running service gets to answer. */
const ANSWER_MS = 3000;

export type ServiceState =
  | { readonly kind: "ready" }
  /** It listens on a socket file, and is not asked. */
  | { readonly kind: "unknown" }
  | { readonly kind: "stopped" }
  | { readonly kind: "other"; readonly url: string; readonly status: number | string };

/** Whether the service runs on this machine, by its own listen address. Never rejects. */
export async function serviceState({ server, tls }: Config): Promise<ServiceState> {
  const address = server.listen;
  if (address.kind !== "tcp") return { kind: "unknown" };
  const isTls = tls.certificates.length > 0;
  const name = address.host ?? "localhost";
  const url = `${isTls ? "https" : "http"}://${name.includes(":") ? `[${name}]` : name}:${address.port}/readyz`;
  const status = await boundedRequest(url, {
    // The certificate is for the name that users type, not for the loopback address.
    tls: { rejectUnauthorized: false },
    timeoutMs: ANSWER_MS,
    maxBytes: "head only",
  }).then(
    (response) => response.status,
    (error: unknown) => messageOf(error),
  );
  if (status === 200) return { kind: "ready" };
  return status === "ECONNREFUSED" ? { kind: "stopped" } : { kind: "other", url, status };
}
