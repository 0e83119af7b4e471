import { AsyncLocalStorage } from "node:async_hooks";
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Span, type Tracer } from "@devplat/telemetry";
import { OPERATION_CHANNEL, type Fact, type Operation } from "./operation.ts";

/** Errors that do not mean a failure of the daemon: the caller gave up, or nothing is stored there. */
const EXPECTED: ReadonlySet<string> = new Set(["aborted", "not_found", "enrolment_cancelled"]);
const SERVER_ERROR = 500;

/** Makes a span of each operation. The operation that began it is its parent. */
export class SpanRecorder {
  readonly #tracer: Tracer;
  readonly #current = new AsyncLocalStorage<Span>();
  readonly #open = new WeakMap<Operation, Span>();
  readonly #subscriber = {
    asyncEnd: (operation: Operation & { error?: unknown }): void => this.#end(operation),
  };

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  start(): void {
    OPERATION_CHANNEL.start.bindStore(this.#current, (operation) => this.#begin(operation));
    OPERATION_CHANNEL.subscribe(this.#subscriber);
  }

  /** Operations that run become no spans. */
  stop(): void {
    OPERATION_CHANNEL.unsubscribe(this.#subscriber);
    OPERATION_CHANNEL.start.unbindStore(this.#current);
  }

  #begin(operation: Operation): Span {
    const parent = this.#current.getStore();
    const context = parent === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, parent);
    const span = this.#tracer.startSpan(operation.name, { kind: kindOf(operation) }, context);
    this.#open.set(operation, span);
    return span;
  }

  #end(operation: Operation & { error?: unknown }): void {
    const span = this.#open.get(operation);
    if (span === undefined) return;
    for (const [name, fact] of Object.entries(operation.facts))
      if (fact !== undefined) span.setAttribute(attributeName(name), valueOf(fact));
    const failure = "error" in operation ? failureOf(operation.error) : undefined;
    if (failure !== undefined) span.setAttribute("error.type", failure);
    const status = operation.facts["http.response.status_code"];
    const isServerError = typeof status === "number" && status >= SERVER_ERROR;
    if (isServerError || (failure !== undefined && !EXPECTED.has(failure)))
      span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  }
}

function kindOf({ name }: Operation): SpanKind {
  if (name === "http.request") return SpanKind.SERVER;
  return name.startsWith("store.") ? SpanKind.CLIENT : SpanKind.INTERNAL;
}

/** Names of the semantic conventions have a dot. Others are the daemon's own. */
function attributeName(fact: string): string {
  return fact.includes(".") ? fact : `agent.${fact}`;
}

function valueOf(fact: Fact): string | number | boolean | string[] {
  return typeof fact === "object" ? [...fact] : fact;
}

/** The code of an error, never its message: that can name a path. In the release, the class of an error is of another bundle. */
function failureOf(error: unknown): string {
  if (!(error instanceof Error)) return "internal";
  if ("code" in error && typeof error.code === "string") return error.code;
  return error.name === "AbortError" ? "aborted" : "internal";
}
