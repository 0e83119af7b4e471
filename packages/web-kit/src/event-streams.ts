import type { ServerResponse } from "node:http";

/** At most this many streams are open at once; the oldest is closed for a new one (spec/agent.md section 6). */
export const MAX_STREAMS = 32;
/** A comment goes out this often, in milliseconds, so that a dead connection is noticed (spec/agent.md section 6). */
export const HEARTBEAT_MS = 15_000;
/** A reader that lets more than this pile up, in bytes, is gone or stuck: its stream is closed. */
export const MAX_UNREAD_BYTES = 1024 * 1024;

export interface EventFrame {
  /** Name of the event; without one, an EventSource delivers it as `message` and htmx swaps it into the page. */
  readonly event?: string;
  readonly data: string;
}

/** One event on the wire (HTML standard, section 9.2.5). Line breaks of the data cannot end the event. */
export function formatEvent(frame: EventFrame): string {
  const name = frame.event === undefined ? "" : `event: ${frame.event.replaceAll(/[\r\n]/g, " ")}\n`;
  const data = frame.data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `${name}${data.join("")}\n`;
}

export interface StreamOptions {
  /** Streams of one channel get the same events. */
  readonly channel: string;
  /** What the stream was opened under (a session); {@link EventStreams.closeOwned} ends it with that. */
  readonly owner?: string;
  /** Sent at once, so that a page that was away catches up. */
  readonly first?: readonly EventFrame[];
}

export interface EventStreamsOptions {
  /** Default {@link MAX_STREAMS}. */
  readonly max?: number;
  /** Default {@link HEARTBEAT_MS}. */
  readonly heartbeatMs?: number;
}

/** The open server-sent event streams of a program. Nothing is kept for those who are away. */
export class EventStreams {
  readonly #max: number;
  readonly #heartbeatMs: number;
  /** Insertion order is age order. */
  readonly #streams = new Map<ServerResponse, StreamOptions>();
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: EventStreamsOptions = {}) {
    this.#max = options.max ?? MAX_STREAMS;
    this.#heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS;
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Makes a response whose headers were not sent yet a stream. Headers that were set on it before are kept. */
  open(response: ServerResponse, options: StreamOptions): void {
    for (const oldest of this.#streams.keys()) {
      if (this.#streams.size < this.#max) break;
      this.#end(oldest);
    }
    response.writeHead(200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      "Cache-Control": "no-store",
    });
    response.on("close", () => this.#forget(response));
    response.on("error", () => this.#forget(response));
    this.#streams.set(response, options);
    this.#heartbeat ??= setInterval(() => this.#writeAll(":\n\n"), this.#heartbeatMs).unref();
    // A first comment brings the headers out at once, so that the page knows that it is connected.
    response.write(`:\n\n${(options.first ?? []).map(formatEvent).join("")}`);
  }

  /** The channels that anybody listens to, so that nothing is rendered for nobody. */
  channels(): ReadonlySet<string> {
    return new Set([...this.#streams.values()].map(({ channel }) => channel));
  }

  send(channel: string, frames: readonly EventFrame[]): void {
    if (frames.length > 0) this.#writeAll(frames.map(formatEvent).join(""), channel);
  }

  /** Ends the streams that were opened under `owner`. */
  closeOwned(owner: string): void {
    for (const [response, options] of this.#streams) if (options.owner === owner) this.#end(response);
  }

  closeAll(): void {
    for (const response of this.#streams.keys()) this.#end(response);
  }

  #writeAll(text: string, channel?: string): void {
    for (const [response, options] of this.#streams) {
      if (channel !== undefined && options.channel !== channel) continue;
      if (response.writableLength > MAX_UNREAD_BYTES) {
        this.#forget(response);
        response.destroy();
      } else response.write(text);
    }
  }

  #end(response: ServerResponse): void {
    this.#forget(response);
    response.end();
  }

  #forget(response: ServerResponse): void {
    this.#streams.delete(response);
    if (this.#streams.size > 0) return;
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
  }
}
