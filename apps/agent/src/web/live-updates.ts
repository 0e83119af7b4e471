import type { Logger, Secret } from "@devplat/base";
import type { EventFrame, EventStreams } from "@devplat/web-kit";
import { liveStatus, statusDocument } from "../api/status-document.ts";
import type { AgentStatus, DaemonView } from "../status.ts";
import { enrolmentViews, type EnrolmentControl } from "./enrolment-routes.ts";
import { enrolmentPartials } from "./pages/enrolments/live.ts";
import { livePartials } from "./pages/index-page.ts";

/** Streams of the pages get HTML to swap in; streams of the API get JSON. */
export const PAGE_CHANNEL = "page";
export const API_CHANNEL = "api";

/** Changes within this time, in milliseconds, go out as one: a cycle over many rules changes each of them. */
const COALESCE_MS = 50;

export interface LiveUpdatesParts {
  readonly view: DaemonView;
  readonly enrolments: Pick<EnrolmentControl, "list" | "prompt">;
  /** The store token that is in use. */
  readonly token: () => Secret | undefined;
  readonly streams: EventStreams;
  readonly logger: Logger;
}

/** Pushes the daemon's state to the open streams whenever it changes. */
export class LiveUpdates {
  readonly #parts: LiveUpdatesParts;
  /** The token under which the open streams were opened. */
  #token: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: LiveUpdatesParts) {
    this.#parts = parts;
  }

  /** Follows the daemon until the signal fires. */
  follow(signal: AbortSignal): void {
    const { view, logger } = this.#parts;
    this.#token = this.#parts.token()?.reveal();
    view.onChange(() => {
      this.#endWithToken();
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        this.#push().catch((error: unknown) => logger.error({ err: error }, "live update failed"));
      }, COALESCE_MS);
    }, signal);
    signal.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  /** The state now, as a stream of the pages gets it. */
  async pageFrames(): Promise<EventFrame[]> {
    const { view, enrolments } = this.#parts;
    const status = view.status();
    const views = enrolmentViews(enrolments);
    const partials = (await livePartials(status, view.rules())) + (await enrolmentPartials(views));
    return [{ event: "updated", data: JSON.stringify(liveStatus(status)) }, { data: partials }];
  }

  /** The state now, as a stream of the API gets it. */
  apiFrames(status: AgentStatus = this.#parts.view.status()): EventFrame[] {
    return [{ event: "status", data: JSON.stringify(statusDocument(status)) }];
  }

  /** A stream was opened by somebody who was signed in, under one token; it ends with that. */
  #endWithToken(): void {
    const { view, streams } = this.#parts;
    const token = this.#parts.token()?.reveal();
    const replaced = token !== this.#token;
    this.#token = token;
    if (replaced || !view.status().authenticated) streams.closeAll();
  }

  async #push(): Promise<void> {
    const { view, streams } = this.#parts;
    if (streams.has(API_CHANNEL)) streams.send(API_CHANNEL, this.apiFrames(view.status()));
    if (streams.has(PAGE_CHANNEL)) streams.send(PAGE_CHANNEL, await this.pageFrames());
  }
}
