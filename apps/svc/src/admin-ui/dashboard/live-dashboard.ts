import type { ServerResponse } from "node:http";
import type { Clock, Logger } from "@devplat/base";
import { EventStreams, livePartial, type EventFrame } from "@devplat/web-kit";
import type { Instances } from "../../administration/instances/instances.ts";
import type { CacheMaintenance } from "../../cache/policy.ts";
import type { CachedRepositories } from "../../administration/repositories/cached-repositories.ts";
import type { Health } from "../../health.ts";
import type { Activity } from "../../telemetry/activity.ts";
import { DASHBOARD_ID, dashboardContent, type DashboardState } from "./dashboard-page.ts";

/** Milliseconds between two updates: short enough to look live. */
const REFRESH_MS = 2000;
const CHANNEL = "dashboard";

export interface LiveDashboardOptions {
  readonly instances: Instances;
  readonly repositories: CachedRepositories;
  readonly maintenance: CacheMaintenance;
  readonly activity: Activity;
  readonly health: Health;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Keeps open dashboards current: a change is sent as one part of the page. Without an open dashboard nothing is rendered. */
export class LiveDashboard {
  readonly #options: LiveDashboardOptions;
  readonly #streams = new EventStreams();
  /** Whether the session that opened a stream may still see it, by its id. */
  readonly #mayWatch = new Map<string, () => Promise<boolean>>();
  #closed = false;
  #sent = "";

  constructor(options: LiveDashboardOptions) {
    this.#options = options;
  }

  async state(): Promise<DashboardState> {
    const { instances, repositories, maintenance, activity, health, clock } = this.#options;
    const fleet = await instances.figures();
    return {
      instances: fleet.instances,
      repositories: repositories.list().map((record) => ({
        ...record,
        stats: fleet.stats(maintenance.stats(record.owner, record.name), record),
      })),
      activity: fleet.activity(activity.snapshot()),
      health: await health.look(),
      now: clock.now(),
    };
  }

  /**
   * Makes a response a stream of the dashboard.
   *
   * @param session id of the session that asks; the stream ends with it
   * @param mayWatch asked before anything is sent
   */
  async open(response: ServerResponse, session: string, mayWatch: () => Promise<boolean>): Promise<void> {
    const first = await this.#frame();
    if (this.#streams.size === 0) this.#sent = first.data;
    this.#mayWatch.set(session, mayWatch);
    this.#streams.open(response, { channel: CHANNEL, owner: session, first: [first] });
    if (this.#closed) this.#streams.closeAll();
  }

  /** Sends what changed until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#options.clock.sleep(REFRESH_MS, signal).catch(() => undefined);
      await this.refresh().catch((error: unknown) => {
        this.#options.logger.warn({ err: error }, "the dashboard could not be brought up to date");
      });
    }
  }

  /** Ends the streams of ended sessions, and sends the changes since the last update to the others. */
  async refresh(): Promise<void> {
    for (const [session, mayWatch] of this.#mayWatch) {
      if (await mayWatch()) continue;
      this.#mayWatch.delete(session);
      this.#streams.closeOwned(session);
    }
    if (this.#streams.size === 0) {
      this.#mayWatch.clear();
      return;
    }
    const frame = await this.#frame();
    if (frame.data === this.#sent) return;
    this.#sent = frame.data;
    this.#streams.send(CHANNEL, [frame]);
  }

  /** Ends all streams, and those to come: a service that stops does not wait for them. */
  close(): void {
    this.#closed = true;
    this.#streams.closeAll();
  }

  async #frame(): Promise<EventFrame> {
    return { data: await livePartial(DASHBOARD_ID, dashboardContent(await this.state())) };
  }
}
