import type { Surface, SurfaceStatus } from "../../surface.ts";
import type { SshAgent } from "./ssh-agent.ts";

/** The SSH agent as a surface. */
export class SshAgentSurface implements Surface {
  readonly #agent: SshAgent;

  constructor(agent: SshAgent) {
    this.#agent = agent;
  }

  async start(): Promise<void> {
    await this.#agent.start();
  }

  async reconcile(): Promise<void> {
    await this.#agent.reload();
  }

  /** Status of the SSH agent is a document of its own. */
  status(): SurfaceStatus {
    return {};
  }

  async stop(): Promise<void> {
    await this.#agent.stop();
  }
}
