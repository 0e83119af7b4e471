import { messageOf } from "@devplat/base";
import { boundedRequest } from "@devplat/http-client";
import type { Config } from "../../config/schema.ts";

/** Milliseconds that the running service gets to answer. */
const ANSWER_MS = 3000;
/** Largest response of `/readyz`: some lines. */
const MAX_BYTES = 64 << 10;

export type ServiceState =
  /** @property notes lines about parts that do not work */
  | { readonly kind: "ready"; readonly notes: readonly string[] }
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
  const { status, text } = await boundedRequest(url, {
    // The certificate is for the name that users type, not for the loopback address.
    tls: { rejectUnauthorized: false },
    timeoutMs: ANSWER_MS,
    maxBytes: MAX_BYTES,
  }).then(
    (response) => ({ status: response.status, text: response.body.toString() }),
    (error: unknown) => ({ status: messageOf(error), text: "" }),
  );
  if (status === 200) return { kind: "ready", notes: text.split("\n").slice(1).filter(Boolean) };
  return status === "ECONNREFUSED" ? { kind: "stopped" } : { kind: "other", url, status };
}
