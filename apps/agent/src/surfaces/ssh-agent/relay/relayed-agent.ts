import { TimeLimit, type Clock } from "@devplat/base";
import type { AgentAnswer, AgentRequest, Identity } from "@devplat/ssh-protocol";
import { RelayFault, RelayLink } from "./relay-link.ts";

/** A list of keys is not worth a longer wait: the client waits with it for the own keys. In milliseconds. */
const LISTING_TIMEOUT_MS = 2000;
/** An agent that hung is not asked again for so long, in milliseconds. */
const PAUSE_MS = 8000;

/** Another SSH agent whose keys this one lists, too. */
export class RelayedAgent {
  readonly path: string;
  readonly #clock: Clock;
  #askAgainAt = 0;
  #problem: string | undefined;
  #known: readonly Identity[] = [];
  #serverPid: number | undefined;

  constructor(path: string, clock: Clock) {
    this.path = path;
    this.#clock = clock;
  }

  /** Why it could not be asked the last time. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** The keys that it has listed last. */
  get known(): readonly Identity[] {
    return this.#known;
  }

  /** The process that answered last. */
  get serverPid(): number | undefined {
    return this.#serverPid;
  }

  /** A way to this agent for one connection. The caller must close it. */
  connect(): RelayedConnection {
    const link = new RelayLink(this.path, (pid) => (this.#serverPid = pid));
    return new RelayedConnection(this, link, this.#clock, {
      mayAsk: () => this.#clock.monotonic() >= this.#askAgainAt,
      onListed: (identities) => {
        this.#known = identities;
        this.#problem = undefined;
      },
      onFault: (fault) => {
        this.#problem = fault.message;
        this.#askAgainAt = this.#clock.monotonic() + PAUSE_MS;
      },
    });
  }
}

interface RelayEvents {
  mayAsk(): boolean;
  onListed(identities: readonly Identity[]): void;
  onFault(fault: RelayFault): void;
}

/** Another SSH agent, as one connection uses it. Its failures count as refusals. */
export class RelayedConnection {
  readonly agent: RelayedAgent;
  readonly #link: RelayLink;
  readonly #clock: Clock;
  readonly #events: RelayEvents;

  constructor(agent: RelayedAgent, link: RelayLink, clock: Clock, events: RelayEvents) {
    this.agent = agent;
    this.#link = link;
    this.#clock = clock;
    this.#events = events;
  }

  /** The keys of the agent; none if it does not answer in time. */
  async identities(signal: AbortSignal): Promise<readonly Identity[]> {
    using limit = this.#limit(signal);
    const answer = await this.ask({ type: "identities" }, limit.signal);
    if (answer.type !== "identities") return [];
    this.#events.onListed(answer.identities);
    return answer.identities;
  }

  /** Passes a session-bind on. The other agent decides itself about it. */
  async bind(content: Buffer, signal: AbortSignal): Promise<void> {
    using limit = this.#limit(signal);
    await this.#link.bind(content, limit.signal).catch((error: unknown) => this.#note(error));
  }

  async ask(request: AgentRequest, signal: AbortSignal): Promise<AgentAnswer> {
    if (!this.#events.mayAsk()) return { type: "failure" };
    try {
      return await this.#link.ask(request, signal);
    } catch (error) {
      this.#note(error);
      return { type: "failure" };
    }
  }

  close(): void {
    this.#link.close();
  }

  #limit(signal: AbortSignal): TimeLimit {
    return new TimeLimit(this.#clock, LISTING_TIMEOUT_MS, signal);
  }

  #note(error: unknown): void {
    if (!(error instanceof RelayFault)) throw error;
    this.#events.onFault(error);
  }
}
