import { z } from "zod";
import { BRAND } from "../../brand.ts";
import type { Config } from "../../config/schema.ts";
import { AgentError } from "../../errors.ts";
import type { Host } from "../../host.ts";
import { DaemonClient, type DaemonChange, type DaemonResponse } from "../../surfaces/socket/daemon-client.ts";
import { apiSocketPath } from "../../surfaces/socket/places.ts";

const problemSchema = z.object({
  code: z.string(),
  detail: z.string(),
  hint: z.string().optional(),
});

/** The running daemon has refused a request. */
export class DaemonRefusal extends AgentError {
  /** Code of the problem document. */
  readonly problem: string;
  /** The problem document. */
  readonly document: unknown;

  constructor(problem: z.infer<typeof problemSchema>, document: unknown) {
    const { code, detail, hint } = problem;
    super("daemon_refused", detail.replace(/\.$/, ""), hint === undefined ? {} : { hint });
    this.problem = code;
    this.document = document;
  }
}

/** Requests of a command to the user's running daemon, over its API socket or its web port. */
export class DaemonRequests {
  readonly #client: DaemonClient;
  readonly #hint: string;

  constructor({ places }: Host, { api, web }: Config) {
    this.#client = new DaemonClient(places.runtime, api.enabled ? apiSocketPath(places, api) : undefined);
    this.#hint =
      api.enabled || web.enabled
        ? `'${BRAND.command} run' starts it.`
        : "It has neither an API socket nor a web port. Set api.enabled: true, and start it again.";
  }

  /** @returns the body @throws AgentError `daemon_unreachable`, DaemonRefusal */
  async get(path: string): Promise<unknown> {
    return this.#body(await this.#client.get(path));
  }

  /** @returns the body @throws AgentError `daemon_unreachable`, DaemonRefusal */
  async change(path: string, change: DaemonChange = {}): Promise<unknown> {
    return this.#body(await this.#client.change(path, change));
  }

  #body(response: DaemonResponse | undefined): unknown {
    if (response === undefined) {
      throw new AgentError("daemon_unreachable", "Cannot reach the daemon: nothing answers", {
        hint: this.#hint,
      });
    }
    const { status, body } = response;
    if (status < 400) return body;
    const problem = problemSchema.safeParse(body);
    const unknown = { code: "internal", detail: `the running daemon answered with status ${status}` };
    throw new DaemonRefusal(problem.data ?? unknown, body);
  }
}
