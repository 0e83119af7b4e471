import type { Logger } from "@devplat/base";
import { isDeepStrictEqual } from "node:util";
import type { SignIn } from "../../../auth/sign-in.ts";
import type { Config } from "../../../config/schema.ts";
import type { Surface, SurfaceStatus } from "../../surface.ts";
import type { Forwards } from "../forwards.ts";
import type { ControlFolder } from "../openssh/control-folder.ts";
import type { TokenLender } from "../tokens/token-lender.ts";
import type { Remotes } from "./remotes.ts";

export interface ForwardsSurfaceParts {
  readonly remotes: Remotes;
  readonly forwards: Forwards;
  readonly folder: Pick<ControlFolder, "endLeftovers">;
  readonly lender: Pick<TokenLender, "start" | "stop">;
  readonly signIn: Pick<SignIn, "state" | "onChange">;
  /** The settings of forwards at the start. */
  readonly settings: Config["ssh"];
  readonly logger: Logger;
}

/** Keeps the forwards of ssh.yaml up, from the first sign-in to the end of the daemon. */
export class ForwardsSurface implements Surface {
  readonly #parts: ForwardsSurfaceParts;
  #settings: Config["ssh"];
  #isStopped = false;
  /** The start of the forwards, after the first sign-in. */
  #beginning: Promise<void> | undefined;

  constructor(parts: ForwardsSurfaceParts) {
    this.#parts = parts;
    this.#settings = parts.settings;
  }

  async start(): Promise<void> {
    const { folder, lender, remotes, signIn, logger } = this.#parts;
    try {
      await folder.endLeftovers();
    } catch (error) {
      logger.warn({ err: error }, "connections of an earlier daemon could not be ended");
    }
    lender.start();
    await remotes.reload();
    signIn.onChange(() => this.#beginIfSignedIn());
    this.#beginIfSignedIn();
  }

  /** Another list of authorities or another ssh counts for connections that are up, too. */
  async reconcile({ ssh }: Config): Promise<void> {
    const { remotes, forwards } = this.#parts;
    await remotes.reload();
    if (isDeepStrictEqual(ssh, this.#settings)) return;
    this.#settings = ssh;
    forwards.retry("edit");
  }

  status(): SurfaceStatus {
    return { remotes: this.#parts.remotes.list() };
  }

  async stop(): Promise<void> {
    const { remotes, forwards, lender } = this.#parts;
    this.#isStopped = true;
    remotes.stop();
    await this.#beginning;
    await forwards.stop();
    await lender.stop();
  }

  /** Forwards stay up when the sign-in is lost later. */
  #beginIfSignedIn(): void {
    const { remotes, signIn } = this.#parts;
    if (this.#isStopped || this.#beginning !== undefined || !signIn.state().authenticated) return;
    this.#beginning = remotes.begin();
  }
}
