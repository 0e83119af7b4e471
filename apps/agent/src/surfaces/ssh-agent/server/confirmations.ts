import { TimeLimit, type Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import { Semaphore } from "@devplat/base/semaphore";
import type { UserQuestions } from "../identity.ts";
import type { PeerProcess } from "../peer-process/peer-process.ts";

/** An authorization counts for so long, in milliseconds. */
const AUTHORIZATION_MS = 10 * 60_000;
/** After a refusal the user is not asked again for so long, in milliseconds. */
const REFUSAL_MS = 60_000;
/** A question that nobody answers counts as refused, in milliseconds. */
const QUESTION_TIMEOUT_MS = 30_000;
const MAX_ANSWERS = 1000;

type Question = Parameters<UserQuestions["confirm"]>[0];

/** A signature that the user must confirm. */
export interface Confirmation {
  readonly question: Question;
  readonly caller: PeerProcess | undefined;
  /** Where the signature is for, with all hosts on the way. */
  readonly destination: string;
}

interface OpenQuestion {
  readonly answer: Promise<boolean>;
  readonly gone: AbortController;
  waiting: number;
}

/**
 * Asks the user before signatures. An answer counts for the same session leader, program, destination and key for a while.
 * Requests that wait for the same answer share one question. Processes in the background share it across sessions, and
 * their questions are put one after another.
 */
export class Confirmations {
  readonly #questions: Pick<UserQuestions, "confirm">;
  readonly #answers: BoundedMap<string, boolean>;
  readonly #open = new Map<string, OpenQuestion>();
  readonly #background = new Semaphore(1);
  readonly #clock: Pick<Clock, "monotonic" | "sleep">;

  constructor(questions: Pick<UserQuestions, "confirm">, clock: Pick<Clock, "monotonic" | "sleep">) {
    this.#questions = questions;
    this.#clock = clock;
    this.#answers = new BoundedMap({ max: MAX_ANSWERS, now: () => clock.monotonic() });
  }

  /** @returns whether the user permits the signature @throws the reason of the signal */
  async confirm(confirmation: Confirmation, signal: AbortSignal): Promise<boolean> {
    const caller = callerKey(confirmation);
    const earlier = caller === undefined ? undefined : this.#answers.get(caller);
    if (earlier !== undefined) return earlier;
    const question = this.#questionFor(confirmation);
    question.waiting += 1;
    try {
      const isPermitted = await unlessAborted(question.answer, signal);
      if (caller !== undefined) {
        this.#answers.set(caller, isPermitted, { ttlMs: isPermitted ? AUTHORIZATION_MS : REFUSAL_MS });
      }
      return isPermitted;
    } finally {
      question.waiting -= 1;
      if (question.waiting === 0) question.gone.abort();
    }
  }

  /** Forgets all answers. */
  clear(): void {
    this.#answers.clear();
  }

  #questionFor(confirmation: Confirmation): OpenQuestion {
    const group = groupKey(confirmation);
    const open = group === undefined ? undefined : this.#open.get(group);
    if (open !== undefined && !open.gone.signal.aborted) return open;
    const gone = new AbortController();
    const limit = new TimeLimit(this.#clock, QUESTION_TIMEOUT_MS, gone.signal);
    const answer = this.#ask(confirmation, limit.signal).finally(() => limit[Symbol.dispose]());
    const question: OpenQuestion = { answer, gone, waiting: 0 };
    if (group !== undefined) this.#open.set(group, question);
    const remove = (): void => {
      if (group !== undefined && this.#open.get(group) === question) this.#open.delete(group);
    };
    // Its failure is handled here as well: all who waited may have left.
    void question.answer.then(remove, remove);
    return question;
  }

  async #ask({ question, caller }: Confirmation, signal: AbortSignal): Promise<boolean> {
    try {
      const release = isBackground(caller) ? await this.#background.acquire(signal) : undefined;
      try {
        return await unlessAborted(this.#questions.confirm(question, signal), signal);
      } finally {
        release?.();
      }
    } catch (error) {
      // Nobody has answered in time, or nobody waits any more.
      if (signal.aborted) return false;
      throw error;
    }
  }
}

/** Whom an answer counts for; undefined if that cannot be told for sure. */
function callerKey({ question, caller, destination }: Confirmation): string | undefined {
  if (caller?.program === undefined || caller.sessionStart === undefined) return undefined;
  const { session, sessionStart, program } = caller;
  return JSON.stringify([session, sessionStart, program, destination, question.fingerprint]);
}

function groupKey(confirmation: Confirmation): string | undefined {
  const { question, caller, destination } = confirmation;
  if (caller?.program === undefined || !isBackground(caller)) return callerKey(confirmation);
  return JSON.stringify(["background", caller.program, destination, question.fingerprint]);
}

function isBackground(caller: PeerProcess | undefined): boolean {
  return caller?.isBackground === true;
}

async function unlessAborted<Result>(promise: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const giveUp = (): void => reject(signal.reason as Error);
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}
