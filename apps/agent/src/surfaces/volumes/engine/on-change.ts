import { exists, type Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { BRAND } from "../../../brand.ts";
import { EngineApi, type Container } from "./engine-api.ts";

/** Label of containers that want to be told. */
export const ON_CHANGE_LABEL = `${BRAND.folder}.on-change`;

/** Reaction of a container to a change of its volume. */
export type Reaction =
  | { readonly kind: "restart" }
  | { readonly kind: "signal"; readonly signal: string }
  | { readonly kind: "exec"; readonly command: string };

/** Reads the value of the label. @returns undefined if it is none of `restart`, `signal:HUP`, `exec:COMMAND` */
export function parseReaction(label: string): Reaction | undefined {
  if (label === "restart") return { kind: "restart" };
  const [, signal] = /^signal:(?:SIG)?([A-Z][A-Z0-9+-]{1,11})$/.exec(label) ?? [];
  if (signal !== undefined) return { kind: "signal", signal };
  const [, command] = /^exec:(.*\S.*)$/s.exec(label) ?? [];
  return command === undefined ? undefined : { kind: "exec", command };
}

export interface OnChangeParts {
  /** `docker.on_change`. */
  readonly isEnabled: () => boolean;
  /** Sockets of the engines, of which some may not exist. */
  readonly sockets: readonly string[];
  /** Resolves when no plugin call is served: an engine waits for the plugin, and would not answer. */
  readonly idle: () => Promise<void>;
  readonly logger: Logger;
}

/** Tells containers with a label that the files of their volume have changed. */
export class OnChange {
  readonly #parts: OnChangeParts;
  readonly #turns = new Serializer();
  readonly #waiting = new Set<string>();

  constructor(parts: OnChangeParts) {
    this.#parts = parts;
  }

  /** Returns immediately. Changes of one volume that come while another is told are one. */
  notify(volume: string): void {
    if (!this.#parts.isEnabled() || this.#waiting.has(volume)) return;
    this.#waiting.add(volume);
    void this.#turns.run(async () => {
      this.#waiting.delete(volume);
      for (const socket of this.#parts.sockets)
        if (await exists(socket)) await this.#tellAll(new EngineApi(socket), volume);
    });
  }

  /** Resolves when all notifications so far have ended. */
  async settled(): Promise<void> {
    await this.#turns.settled();
  }

  async #tellAll(engine: EngineApi, volume: string): Promise<void> {
    const { idle, logger } = this.#parts;
    try {
      await idle();
      for (const container of await engine.containersWith(volume, ON_CHANGE_LABEL)) {
        await idle();
        await this.#tell(engine, container, volume);
      }
    } catch (error) {
      logger.warn({ engine: engine.socket, volume, err: error }, "containers cannot be told about a change");
    }
  }

  async #tell(engine: EngineApi, { id, name, labels }: Container, volume: string): Promise<void> {
    const { logger } = this.#parts;
    const reaction = parseReaction(labels[ON_CHANGE_LABEL] ?? "");
    if (reaction === undefined) {
      logger.warn(
        { container: name },
        `label ${ON_CHANGE_LABEL} is none of restart, signal:NAME and exec:COMMAND`,
      );
      return;
    }
    try {
      switch (reaction.kind) {
        case "restart":
          await engine.restart(id);
          break;
        case "signal":
          await engine.signal(id, reaction.signal);
          break;
        case "exec":
          await engine.exec(id, ["/bin/sh", "-c", reaction.command]);
          break;
      }
      logger.info({ container: name, volume, reaction: reaction.kind }, "container was told about a change");
    } catch (error) {
      logger.warn({ container: name, volume, err: error }, "container could not be told about a change");
    }
  }
}
