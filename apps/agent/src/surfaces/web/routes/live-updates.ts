import type { Logger, Secret } from "@devplat/base";
import type { EventFrame, EventStreams } from "@devplat/web-kit";
import { API_CHANNEL, liveStatus, statusDocument } from "../../http-api/status/status-document.ts";
import type { ApiParts } from "../../http-api/environment.ts";
import type { AgentStatus, DaemonView } from "../../../status.ts";
import { enrolmentViews, type EnrolmentControl } from "./enrolment-views.ts";
import { liveParts } from "../pages/live-topics.ts";

/** Streams of the pages get HTML to swap in, by topic; those of the API see {@link API_CHANNEL}. */
const PAGE_PREFIX = "page:";
const EVERY_PAGE = "page";
/** Streams of managed SSH forwards get the remotes as JSON, too. */
const SSH_PREFIX = "ssh:";

/** @param topic what the page shows; undefined: every topic, for a program that follows the pages */
export function pageChannel(topic: string | undefined): string {
  return topic === undefined ? EVERY_PAGE : PAGE_PREFIX + topic;
}

/** @param topic see {@link pageChannel} */
export function sshChannel(topic: string): string {
  return SSH_PREFIX + topic;
}

/** Changes within this time, in milliseconds, go out as one: a cycle over many rules changes each of them. */
const COALESCE_MS = 50;
/** The channel of the page with remaining times. They are shown in minutes, and go on without a change of state. */
const AGENT_CHANNEL = `${PAGE_PREFIX}agent`;
/** That channel gets them this often, in milliseconds. */
const REMAINING_MS = 30_000;

export interface LiveUpdatesParts extends Pick<ApiParts, "remotes" | "sshAgent"> {
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
    const { view } = this.#parts;
    this.#token = this.#parts.token()?.reveal();
    view.onChange(() => {
      this.#endWithToken();
      this.#pushSoon();
    }, signal);
    const remaining = setInterval(() => this.#pushAgain(AGENT_CHANNEL), REMAINING_MS).unref();
    const end = (): void => {
      clearTimeout(this.#timer);
      clearInterval(remaining);
    };
    signal.addEventListener("abort", end, { once: true });
  }

  /** The state now, as a stream of the pages gets it. @param topic see {@link pageChannel} */
  async pageFrames(topic: string | undefined): Promise<EventFrame[]> {
    const { view, enrolments, remotes, sshAgent } = this.#parts;
    const status = view.status();
    const sources = {
      status,
      rules: view.rules(),
      enrolments: enrolmentViews(enrolments),
      remotes: { remotes: remotes?.list() ?? [], fileProblem: remotes?.fileProblem(), peers: status.peers },
      sshAgent: sshAgent()?.status(),
    };
    const data = await liveParts(topic, sources);
    return [{ event: "updated", data: JSON.stringify(liveStatus(status)) }, { data }];
  }

  /** The state now, as a stream of managed SSH forwards gets it. @param topic see {@link pageChannel} */
  async sshFrames(topic: string): Promise<EventFrame[]> {
    const { remotes } = this.#parts;
    const state = { remotes: remotes?.list() ?? [], file_problem: remotes?.fileProblem() ?? null };
    return [{ event: "remotes", data: JSON.stringify(state) }, ...(await this.pageFrames(topic))];
  }

  /** The state now, as a stream of the API gets it. */
  apiFrames(status: AgentStatus = this.#parts.view.status()): EventFrame[] {
    return [{ event: "status", data: JSON.stringify(statusDocument(status)) }];
  }

  /** Ends streams with the token under which they were opened. */
  #endWithToken(): void {
    const { view, streams } = this.#parts;
    const token = this.#parts.token()?.reveal();
    const replaced = token !== this.#token;
    this.#token = token;
    if (replaced || !view.status().authenticated) streams.closeAll();
  }

  #pushSoon(): void {
    const { logger } = this.#parts;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#push().catch((error: unknown) => logger.error({ err: error }, "live update failed"));
    }, COALESCE_MS);
  }

  #pushAgain(channel: string): void {
    const { streams, logger } = this.#parts;
    if (!streams.channels().has(channel)) return;
    this.#pushTo(channel).catch((error: unknown) => logger.error({ err: error }, "live update failed"));
  }

  async #push(): Promise<void> {
    // Only for open streams.
    for (const channel of this.#parts.streams.channels()) await this.#pushTo(channel);
  }

  async #pushTo(channel: string): Promise<void> {
    const { streams } = this.#parts;
    if (channel === API_CHANNEL) streams.send(channel, this.apiFrames());
    else if (channel.startsWith(SSH_PREFIX)) {
      streams.send(channel, await this.sshFrames(channel.slice(SSH_PREFIX.length)));
    } else {
      const topic = channel === EVERY_PAGE ? undefined : channel.slice(PAGE_PREFIX.length);
      streams.send(channel, await this.pageFrames(topic));
    }
  }
}
