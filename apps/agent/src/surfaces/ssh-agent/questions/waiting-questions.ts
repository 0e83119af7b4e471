import { randomBytes } from "node:crypto";
import type { Clock, Logger, Secret } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { SshAgentStatus } from "../../../ssh-agent-view.ts";
import type { QuestionBoard } from "../question-board.ts";
import type { AskpassProgram } from "./askpass.ts";
import { promptText } from "./prompt-text.ts";
import type { Answer, Question } from "./question.ts";
import { ChangeListeners } from "../../../change-listeners.ts";

/** Time for an answer, in milliseconds. */
const ANSWER_LIMIT_MS = 30_000;
/** Maximum number of waiting questions. A client that asks for more is refused. */
const MAX_WAITING = 32;
/** Random bytes in the id of a question. */
const ID_BYTES = 16;

/** A question that waits for its answer. */
interface Waiting {
  readonly id: string;
  readonly question: Question;
  /** Milliseconds since the epoch. */
  readonly askedAt: number;
  readonly answer: Promise<Answer | undefined>;
  readonly resolve: (answer: Answer | undefined) => void;
  readonly ended: AbortController;
  /** Requests that wait for this answer. */
  requests: number;
}

export interface WaitingQuestionsParts {
  /** Undefined: the user answers in the web UI or on the command line. */
  readonly askpass: Pick<AskpassProgram, "ask"> | undefined;
  /** Tells the user that a question waits. Called when the program of `askpass` cannot ask. */
  readonly announce: (question: Question) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Questions to the user that wait for an answer, from the program of SSH_ASKPASS, the web UI or the command line. The first answer
 * counts. Without one in time the answer is a refusal. Equal questions are asked once, and prompts are shown one after another.
 */
export class WaitingQuestions implements QuestionBoard {
  readonly #parts: WaitingQuestionsParts;
  readonly #waiting = new Map<string, Waiting>();
  readonly #listeners = new ChangeListeners();
  readonly #prompts = new Serializer();

  constructor(parts: WaitingQuestionsParts) {
    this.#parts = parts;
  }

  async passphrase(
    key: { readonly comment: string; readonly fingerprint: string; readonly wrongBefore: boolean },
    signal: AbortSignal,
  ): Promise<Secret | undefined> {
    const { comment, fingerprint, wrongBefore } = key;
    const facts = wrongBefore ? [{ text: "the passphrase before was wrong", verified: true }] : [];
    const answer = await this.#ask({ kind: "passphrase", comment, fingerprint, facts }, signal);
    return answer !== undefined && "passphrase" in answer ? answer.passphrase : undefined;
  }

  async confirm(question: Omit<Question, "kind">, signal: AbortSignal): Promise<boolean> {
    const { comment, fingerprint, facts } = question;
    const answer = await this.#ask({ kind: "confirm", comment, fingerprint, facts }, signal);
    return answer !== undefined && "confirmed" in answer && answer.confirmed;
  }

  /** The questions that wait, oldest first. */
  open(): SshAgentStatus["questions"] {
    return [...this.#waiting.values()].map(({ id, question, askedAt }) => ({
      id,
      kind: question.kind,
      identity: question.comment,
      fingerprint: question.fingerprint,
      facts: question.facts.map((fact) => ({ ...fact })),
      asked_at: new Date(askedAt).toISOString(),
      expires_at: new Date(askedAt + ANSWER_LIMIT_MS).toISOString(),
    }));
  }

  /** Answers a question. @returns false if it does not wait any more, or asks for something else */
  answer(id: string, answer: Answer): boolean {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return false;
    const isConfirmation = "confirmed" in answer && answer.confirmed;
    const wrongKind = waiting.question.kind === "confirm" ? "passphrase" in answer : isConfirmation;
    if (wrongKind) return false;
    this.#end(waiting, answer, "answered in the web UI or on the command line");
    return true;
  }

  /** Calls back when a question is asked or ends, until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Refuses all questions that wait. */
  refuseAll(): void {
    for (const waiting of this.#waiting.values()) this.#end(waiting, undefined, "refused by the daemon");
  }

  async #ask(question: Question, signal: AbortSignal): Promise<Answer | undefined> {
    if (signal.aborted) return undefined;
    const waiting = this.#equal(question) ?? this.#begin(question);
    if (waiting === undefined) return undefined;
    const { promise: given, resolve: giveUp } = Promise.withResolvers<undefined>();
    const leave = (): void => giveUp(undefined);
    signal.addEventListener("abort", leave, { once: true });
    waiting.requests++;
    try {
      return await Promise.race([waiting.answer, given]);
    } finally {
      signal.removeEventListener("abort", leave);
      waiting.requests--;
      if (waiting.requests === 0) this.#end(waiting, undefined, "the request has ended");
    }
  }

  #equal(question: Question): Waiting | undefined {
    const asked = JSON.stringify(question);
    return [...this.#waiting.values()].find((waiting) => JSON.stringify(waiting.question) === asked);
  }

  #begin(question: Question): Waiting | undefined {
    const { clock, logger } = this.#parts;
    const { kind, fingerprint } = question;
    if (this.#waiting.size >= MAX_WAITING) {
      logger.warn({ kind, fingerprint }, "too many questions wait for the user");
      return undefined;
    }
    const { promise: answer, resolve } = Promise.withResolvers<Answer | undefined>();
    const id = randomBytes(ID_BYTES).toString("hex");
    const ended = new AbortController();
    const waiting = { id, question, askedAt: clock.now(), answer, resolve, ended, requests: 0 };
    this.#waiting.set(id, waiting);
    logger.info({ kind, fingerprint }, "a question waits for the user");
    void clock.sleep(ANSWER_LIMIT_MS, ended.signal).then(
      () => this.#end(waiting, undefined, "nobody has answered in time"),
      () => undefined,
    );
    this.#prompts
      .run(() => this.#prompt(waiting))
      .catch((error: unknown) => {
        logger.error({ err: error }, "the user could not be asked");
        this.#end(waiting, undefined, "the user could not be asked");
      });
    this.#changed();
    return waiting;
  }

  async #prompt(waiting: Waiting): Promise<void> {
    const { askpass, announce, logger } = this.#parts;
    const { question, ended } = waiting;
    if (ended.signal.aborted) return;
    const result = await askpass?.ask(question.kind, promptText(question), ended.signal);
    if (result === undefined || result === "not_started") {
      if (result !== undefined) logger.warn({}, "the program of SSH_ASKPASS cannot be run");
      // It does not delay the next question.
      announce(question).catch((error: unknown) => logger.warn({ err: error }, "no notification was raised"));
    } else {
      this.#end(
        waiting,
        result === "refused" ? undefined : answerOf(question, result.text),
        "asked by SSH_ASKPASS",
      );
    }
  }

  #end(waiting: Waiting, answer: Answer | undefined, how: string): void {
    if (!this.#waiting.delete(waiting.id)) return;
    const { kind, fingerprint } = waiting.question;
    const isAllowed = answer !== undefined && ("passphrase" in answer || answer.confirmed);
    this.#parts.logger.info(
      { kind, fingerprint, how, allowed: isAllowed },
      "a question to the user has ended",
    );
    waiting.resolve(answer);
    waiting.ended.abort();
    this.#changed();
  }

  #changed(): void {
    this.#listeners.changed();
  }
}

/** OpenSSH takes an empty line and the word yes for a confirmation. An empty passphrase is a refusal. */
function answerOf({ kind }: Question, text: Secret): Answer | undefined {
  const line = text.reveal();
  if (kind === "confirm") return { confirmed: line === "" || line.toLowerCase() === "yes" };
  return line === "" ? undefined : { passphrase: text };
}
