import type { IncomingMessage, ServerResponse } from "node:http";
import type { Administration } from "./administration.ts";
import { Late } from "../late.ts";

/** The administration, put together with the first request for it. */
export class LateAdministration {
  readonly #administration: Late<Administration>;
  readonly #ended = new AbortController();
  /** The run that keeps dashboards current. */
  #running: Promise<void> | undefined;

  constructor(assemble: () => Promise<Administration>) {
    this.#administration = new Late(async () => this.#start(await assemble()));
  }

  /** @throws what putting it together throws */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { listener } = await this.#administration.get();
    listener(request, response);
  }

  /** Ends the streams of dashboards, and those to come: a service that stops does not wait for them. Never rejects. */
  async close(): Promise<void> {
    this.#ended.abort();
    const administration = await this.#administration.ifMade();
    administration?.dashboard.close();
    await this.#running;
  }

  #start(administration: Administration): Administration {
    const { dashboard } = administration;
    if (this.#ended.signal.aborted) dashboard.close();
    else this.#running = dashboard.run(this.#ended.signal);
    return administration;
  }
}
