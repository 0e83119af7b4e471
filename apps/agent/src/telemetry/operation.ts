import { tracingChannel } from "node:diagnostics_channel";

/**
 * The operations of the daemon that can become spans, each with the facts that it may tell. No fact is a value or path of a
 * secret, a path of a file, a token, or a text of another program.
 */
export const OPERATIONS = {
  "sync.cycle": ["changed", "unchanged", "failed", "missing"],
  "sync.rule": ["rule"],
  "sync.file": ["rules", "changed", "failed"],
  "sync.command": ["rules", "exit_code", "timed_out"],
  "auth.sign_in": ["source"],
  "auth.renewal": ["result"],
  "auth.borrow": ["result"],
  "auth.login": ["method"],
  "auth.certificate": [],
  "enrolment.run": ["engine"],
  "enrolment.renewal": ["engine"],
  "http.request": ["http.request.method", "http.route", "http.response.status_code", "surface"],
  "store.list": ["driver"],
  "store.read": ["driver"],
  "store.metadata": ["driver"],
  "store.write": ["driver"],
  "store.delete": ["driver"],
  "store.ping": ["driver"],
} as const;

export type Fact = string | number | boolean | readonly string[];
export type OperationName = keyof typeof OPERATIONS;

/** Facts about an operation. One can be added until its end. */
export type Facts<Name extends OperationName> = Partial<Record<(typeof OPERATIONS)[Name][number], Fact>>;

/** An operation as subscribers of {@link OPERATION_CHANNEL} see it. */
export interface Operation {
  readonly name: OperationName;
  readonly facts: Readonly<Record<string, Fact | undefined>>;
}

/** Tells about operations. Without subscribers it does nothing. */
export const OPERATION_CHANNEL = tracingChannel<Operation, unknown>("agent.operation");

/** Runs an operation. It becomes a span if traces are exported; the operations that it runs are its children. */
export function traced<Name extends OperationName, Result>(
  name: Name,
  facts: Facts<Name>,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!OPERATION_CHANNEL.hasSubscribers) return work();
  return OPERATION_CHANNEL.tracePromise(work, { name, facts });
}
