import type { Config } from "../config/schema.ts";
import type { AgentStatus } from "../status.ts";

/** Part of the daemon's status that surfaces add. */
export type SurfaceStatus = Pick<AgentStatus, "api" | "peers" | "ssh_agent" | "docker"> &
  Partial<Pick<AgentStatus, "remotes" | "fuse">>;

/** A way into the running daemon, such as the web port or a socket. */
export interface Surface {
  /** Begins to serve. After a failure nothing of it is left. */
  start(): Promise<void>;
  /** Takes up a changed configuration while it serves. Sections that apply after the next start change nothing. */
  reconcile(config: Config): Promise<void>;
  status(): SurfaceStatus;
  /** Ends what {@link Surface.start} has started. Running requests get a short time to end. */
  stop(): Promise<void>;
}

/** Several surfaces as one: all of them serve, or none. */
export class SurfaceGroup implements Surface {
  readonly #surfaces: Surface[] = [];
  readonly #started: Surface[] = [];

  /** Adds a surface that starts after the others. */
  add(surface: Surface): void {
    this.#surfaces.push(surface);
  }

  async start(): Promise<void> {
    try {
      for (const surface of this.#surfaces) {
        await surface.start();
        this.#started.push(surface);
      }
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async reconcile(config: Config): Promise<void> {
    for (const surface of this.#surfaces) await surface.reconcile(config);
  }

  status(): SurfaceStatus {
    return Object.assign({}, ...this.#surfaces.map((surface) => surface.status())) as SurfaceStatus;
  }

  async stop(): Promise<void> {
    // Concurrently, because each may wait for running requests.
    await Promise.all(this.#started.splice(0).map((surface) => surface.stop()));
  }
}
