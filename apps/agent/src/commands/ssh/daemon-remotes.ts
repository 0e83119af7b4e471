import { visible } from "@devplat/base/terminal";
import { z } from "zod";
import { BRAND } from "../../brand.ts";
import { AgentError } from "../../errors.ts";
import {
  offeredKeySchema,
  remoteViewSchema,
  type OfferedKeyView,
  type RemoteView,
} from "../../remote-view.ts";
import type { DaemonChange, DaemonClient, DaemonResponse } from "../../surfaces/socket/daemon-client.ts";
import type { RemoteSettings } from "./settings.ts";

const PATH = "/api/v1/ssh/remotes";
/** A chain of hosts whose keys are asked for one after the other, then the connection itself. In milliseconds. */
const DIAL_TIMEOUT_MS = 300_000;
/** A store that is slow to revoke a token, in milliseconds. */
const REVOKE_TIMEOUT_MS = 60_000;

const listSchema = z.object({ remotes: z.array(remoteViewSchema), file_problem: z.string().nullable() });
const problemSchema = z.object({
  code: z.string(),
  detail: z.string(),
  hint: z.string().optional(),
  class: z.string().optional(),
  offered: offeredKeySchema.optional(),
});
type DaemonProblem = z.infer<typeof problemSchema>;

export type RemoteList = z.infer<typeof listSchema>;

/** Result of a request that may need a key to be confirmed. */
export type DialResult =
  | { readonly state: "saved"; readonly remote: RemoteView }
  | { readonly state: "unconfirmed"; readonly offered: OfferedKeyView };

/** The remotes of the running daemon. Every method throws AgentError `daemon_unreachable` | `daemon_refused`. */
export class DaemonRemotes {
  readonly #daemon: DaemonClient;

  constructor(daemon: DaemonClient) {
    this.#daemon = daemon;
  }

  /** @returns undefined if no daemon answers */
  async list(): Promise<RemoteList | undefined> {
    const response = await this.#daemon.get(PATH);
    return response && bodyOf(response, listSchema);
  }

  /** @param accepted fingerprints that the user has confirmed */
  async add(
    host: string,
    settings: RemoteSettings & { readonly force?: true },
    accepted: readonly string[],
  ): Promise<DialResult> {
    return await this.#dial(host, PATH, { host, ...settings, accept_fingerprint: accepted });
  }

  async repin(host: string, accepted: readonly string[]): Promise<DialResult> {
    return await this.#dial(host, `${pathOf(host)}/host-key`, { accept_fingerprint: accepted });
  }

  async edit(host: string, settings: RemoteSettings): Promise<RemoteView> {
    const response = await this.#change(pathOf(host), { method: "PATCH", body: settings });
    return successOf(host, response, remoteViewSchema);
  }

  async remove(host: string): Promise<void> {
    successOf(host, await this.#change(pathOf(host), { method: "DELETE" }), z.unknown());
  }

  async retry(host: string): Promise<void> {
    successOf(host, await this.#change(`${pathOf(host)}/retry`, {}), z.unknown());
  }

  async consent(host: string, allowed: boolean): Promise<void> {
    const response = await this.#change(`${pathOf(host)}/consent`, { body: { allowed } });
    successOf(host, response, z.unknown());
  }

  async revoke(host: string): Promise<void> {
    const response = await this.#change(`${pathOf(host)}/revoke`, { timeoutMs: REVOKE_TIMEOUT_MS });
    successOf(host, response, z.unknown());
  }

  async #dial(host: string, path: string, body: object): Promise<DialResult> {
    const response = await this.#change(path, { body, timeoutMs: DIAL_TIMEOUT_MS });
    const offered = problemSchema.safeParse(response.body).data?.offered;
    if (response.status === 409 && offered !== undefined) return { state: "unconfirmed", offered };
    return { state: "saved", remote: successOf(host, response, remoteViewSchema) };
  }

  async #change(path: string, change: DaemonChange): Promise<DaemonResponse> {
    const response = await this.#daemon.change(path, change);
    if (response === undefined) throw unreachable();
    return response;
  }
}

/** The error of a command that needs the daemon. */
export function unreachable(): AgentError {
  return new AgentError(
    "daemon_unreachable",
    "Cannot reach the daemon: it answers on no socket and no port",
    {
      hint: `Start it with '${BRAND.command} run', with api.enabled: true or web.enabled: true.`,
    },
  );
}

export function unknownHost(host: string): AgentError {
  return new AgentError("daemon_refused", `there is no remote '${host}'`, {
    hint: `'${BRAND.command} ssh list' shows the remotes.`,
  });
}

function pathOf(host: string): string {
  return `${PATH}/${encodeURIComponent(host)}`;
}

function successOf<T>(host: string, response: DaemonResponse, schema: z.ZodType<T>): T {
  if (response.status < 400) return bodyOf(response, schema);
  const problem = problemSchema.safeParse(response.body).data;
  throw problem === undefined ? notUnderstood() : refusal(host, problem);
}

function bodyOf<T>({ body, status }: DaemonResponse, schema: z.ZodType<T>): T {
  const problem = status < 400 ? undefined : problemSchema.safeParse(body).data;
  if (problem !== undefined) throw refusal("", problem);
  const parsed = schema.safeParse(body);
  if (!parsed.success) throw notUnderstood();
  return parsed.data;
}

/** The error of the command for a problem of the daemon. Its text may come from a server. */
function refusal(host: string, { code, detail, hint, class: failure }: DaemonProblem): AgentError {
  const text = visible(detail).replace(/\.$/, "");
  const more = hint === undefined ? {} : { hint: visible(hint) };
  switch (code) {
    case "host_unknown":
      return unknownHost(host);
    case "host_exists":
      return new AgentError("daemon_refused", `'${host}' is a remote already`, {
        hint: `'${BRAND.command} ssh edit' changes it, and '${BRAND.command} ssh add --repin' pins its key again.`,
      });
    case "connection_failed":
      return new AgentError(
        "daemon_refused",
        `Cannot connect to ${host} (${visible(failure ?? "failed")}): ${text}`,
        more,
      );
    default:
      return new AgentError("daemon_refused", text, more);
  }
}

function notUnderstood(): AgentError {
  return new AgentError("daemon_refused", "Cannot read the daemon's response: it has another version", {
    hint: "Start the daemon again.",
  });
}
