import type { Logger } from "@devplat/base";
import type { EventFrame, EventStreams } from "@devplat/web-kit";
import { liveStatus, statusDocument } from "../api/status-document.ts";
import type { AgentStatus, DaemonView } from "../status.ts";
import { livePartials } from "./pages/index-page.ts";

/** Streams of the pages get HTML to swap in; streams of the API get JSON. */
export const PAGE_CHANNEL = "page";
export const API_CHANNEL = "api";

/** Changes within this time, in milliseconds, go out as one: a cycle over many rules changes each of them. */
const COALESCE_MS = 50;

/** Pushes the daemon's state to the open streams whenever it changes. */
export class LiveUpdates {
  readonly #view: DaemonView;
  readonly #streams: EventStreams;
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;

  constructor(view: DaemonView, streams: EventStreams, logger: Logger) {
    this.#view = view;
    this.#streams = streams;
    this.#logger = logger;
  }

  /** Follows the daemon until the signal fires. */
  follow(signal: AbortSignal): void {
    this.#view.onChange(() => {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        this.#push().catch((error: unknown) => this.#logger.error({ err: error }, "live update failed"));
      }, COALESCE_MS);
    }, signal);
    signal.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  /** The state now, as a stream of the pages gets it. */
  async pageFrames(): Promise<EventFrame[]> {
    const status = this.#view.status();
    const partials = await livePartials(status, this.#view.rules());
    return [{ event: "updated", data: JSON.stringify(liveStatus(status)) }, { data: partials }];
  }

  /** The state now, as a stream of the API gets it. */
  apiFrames(status: AgentStatus = this.#view.status()): EventFrame[] {
    return [{ event: "status", data: JSON.stringify(statusDocument(status)) }];
  }

  async #push(): Promise<void> {
    const status = this.#view.status();
    // A stream was opened by somebody who was signed in; it ends with that.
    if (!status.authenticated) this.#streams.closeAll();
    if (this.#streams.has(API_CHANNEL)) this.#streams.send(API_CHANNEL, this.apiFrames(status));
    if (this.#streams.has(PAGE_CHANNEL)) this.#streams.send(PAGE_CHANNEL, await this.pageFrames());
  }
}
