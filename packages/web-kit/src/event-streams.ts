import type { ServerResponse } from "node:http";

/** Maximum open streams. The oldest is closed for a new one (spec/agent.md section 6). */
export const MAX_STREAMS = 32;
/** Interval of the comment that finds dead connections, in milliseconds (spec/agent.md section 6). */
export const HEARTBEAT_MS = 15_000;
/** Maximum unread bytes of a stream. With more, its reader is gone or stuck, and the stream is closed. */
export const MAX_UNREAD_BYTES = 1024 * 1024;

export interface EventFrame {
  /** Name of the event. Without one, an EventSource delivers it as `message` and htmx swaps it into the page. */
  readonly event?: string;
  readonly data: string;
}

/** Text of one event (HTML standard, section 9.2.5). Line breaks in the data cannot end the event. */
export function formatEvent(frame: EventFrame): string {
  const name = frame.event === undefined ? "" : `event: ${frame.event.replaceAll(/[\r\n]/g, " ")}\n`;
  const data = frame.data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `${name}${data.join("")}\n`;
}

export interface StreamOptions {
  /** Name of the channel. Its streams get the same events. */
  readonly channel: string;
  /** Owner of the stream, such as a session. {@link EventStreams.closeOwned} ends its streams. */
  readonly owner?: string;
  /** Events to send immediately, so that a page that reconnects is current. */
  readonly first?: readonly EventFrame[];
}

export interface EventStreamsOptions {
  /** Default {@link MAX_STREAMS}. */
  readonly max?: number;
  /** Default {@link HEARTBEAT_MS}. */
  readonly heartbeatMs?: number;
}

/** Open streams of server-sent events. Events are not kept for readers that reconnect. */
export class EventStreams {
  readonly #max: number;
  readonly #heartbeatMs: number;
  /** Streams in the order of their opening. */
  readonly #streams = new Map<ServerResponse, StreamOptions>();
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: EventStreamsOptions = {}) {
    this.#max = options.max ?? MAX_STREAMS;
    this.#heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS;
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Makes a stream of a response whose headers are not sent yet. Headers that were set before are kept. */
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
    // The first comment sends the headers immediately, so that the page knows that it is connected.
    response.write(`:\n\n${(options.first ?? []).map(formatEvent).join("")}`);
  }

  /** Channels with at least one reader. Only their events need to be rendered. */
  channels(): ReadonlySet<string> {
    return new Set([...this.#streams.values()].map(({ channel }) => channel));
  }

  send(channel: string, frames: readonly EventFrame[]): void {
    if (frames.length > 0) this.#writeAll(frames.map(formatEvent).join(""), channel);
  }

  /** Ends the streams of an owner. */
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
