import type { Logger } from "@devplat/base";
import type { Surface, SurfaceStatus } from "../../surface.ts";
import type { SshAgent } from "./ssh-agent.ts";

/** The SSH agent as a surface. A socket that cannot be opened is logged, and never keeps the daemon from its other work. */
export class SshAgentSurface implements Surface {
  readonly #agent: Pick<SshAgent, "start" | "reload" | "stop">;
  readonly #logger: Logger;
  #isStarted = false;

  constructor(agent: Pick<SshAgent, "start" | "reload" | "stop">, logger: Logger) {
    this.#agent = agent;
    this.#logger = logger;
  }

  async start(): Promise<void> {
    try {
      await this.#agent.start();
      this.#isStarted = true;
    } catch (error) {
      this.#logger.error({ err: error }, "SSH agent does not serve");
    }
  }

  /** After a failed start it is tried again. */
  async reconcile(): Promise<void> {
    if (!this.#isStarted) return await this.start();
    try {
      await this.#agent.reload();
    } catch (error) {
      this.#logger.error({ err: error }, "SSH agent serves with its earlier sockets");
    }
  }

  /** The SSH agent's status is a document of its own. */
  status(): SurfaceStatus {
    return {};
  }

  async stop(): Promise<void> {
    await this.#agent.stop();
  }
}
