import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { Secret, silentLogger } from "@devplat/base";
import { until } from "@devplat/testkit";
import { HandClock } from "../../../sync/clock.test-kit.ts";
import type { AskpassResult } from "./askpass.ts";
import type { Question } from "./question.ts";
import { WaitingQuestions, type WaitingQuestionsParts } from "./waiting-questions.ts";

const KEY = { comment: "ada@work", fingerprint: "SHA256:a" };
const QUESTION = { ...KEY, facts: [{ text: "host git.example.com", verified: true }] };
const PASSPHRASE = new Secret("correct horse");

/** A program of SSH_ASKPASS that answers when the test says so. */
class TestAskpass {
  readonly prompts: { prompt: string; signal: AbortSignal; answer: (result: AskpassResult) => void }[] = [];

  ask(_kind: "confirm" | "passphrase", prompt: string, signal: AbortSignal): Promise<AskpassResult> {
    const { promise, resolve } = Promise.withResolvers<AskpassResult>();
    signal.addEventListener("abort", () => resolve("refused"), { once: true });
    this.prompts.push({ prompt, signal, answer: resolve });
    return promise;
  }
}

function stand(askpass?: WaitingQuestionsParts["askpass"]) {
  const clock = new HandClock();
  const announced: Question[] = [];
  const announce = async (question: Question): Promise<void> => void announced.push(question);
  const questions = new WaitingQuestions({ askpass, announce, clock, logger: silentLogger });
  const only = (): string => questions.open()[0]?.id ?? "";
  return { clock, announced, questions, only };
}

const ends: AbortController[] = [];
function live(): AbortSignal {
  const controller = new AbortController();
  ends.push(controller);
  return controller.signal;
}
afterEach(() => {
  for (const controller of ends.splice(0)) controller.abort();
});

describe("WaitingQuestions without SSH_ASKPASS", () => {
  it("announces a question, lists it, and takes the answer of the page", async () => {
    const { questions, announced, only } = stand();
    const result = questions.confirm(QUESTION, live());
    await until(async () => announced.length === 1);
    const [listed] = questions.open();
    assert.match(listed?.id ?? "", /^[0-9a-f]{32}$/);
    assert.deepEqual(listed, {
      id: listed?.id,
      kind: "confirm",
      identity: "ada@work",
      fingerprint: "SHA256:a",
      facts: QUESTION.facts,
      asked_at: "2001-09-09T01:46:40.000Z",
      expires_at: "2001-09-09T01:47:10.000Z",
    });
    assert.equal(questions.answer(only(), { confirmed: true }), true);
    assert.equal(await result, true);
    assert.deepEqual(questions.open(), []);
    assert.equal(questions.answer(listed?.id ?? "", { confirmed: true }), false);
  });

  it("a refusal and a passphrase reach their callers", async () => {
    const { questions, only } = stand();
    const refused = questions.confirm(QUESTION, live());
    assert.equal(questions.answer(only(), { confirmed: false }), true);
    assert.equal(await refused, false);
    const given = questions.passphrase({ ...KEY, wrongBefore: false }, live());
    assert.equal(questions.answer(only(), { passphrase: PASSPHRASE }), true);
    assert.equal((await given)?.reveal(), "correct horse");
    const kept = questions.passphrase({ ...KEY, wrongBefore: true }, live());
    assert.deepEqual(questions.open()[0]?.facts, [
      { text: "the passphrase before was wrong", verified: true },
    ]);
    assert.equal(questions.answer(only(), { confirmed: false }), true);
    assert.equal(await kept, undefined);
  });

  it("an answer of the other kind is not taken", async () => {
    const { questions, only } = stand();
    const confirmation = questions.confirm(QUESTION, live());
    assert.equal(questions.answer(only(), { passphrase: PASSPHRASE }), false);
    assert.equal(questions.answer(only(), { confirmed: false }), true);
    assert.equal(await confirmation, false);
    const passphrase = questions.passphrase({ ...KEY, wrongBefore: false }, live());
    assert.equal(questions.answer(only(), { confirmed: true }), false);
    assert.equal(questions.answer("no such id", { confirmed: false }), false);
    assert.equal(questions.answer(only(), { confirmed: false }), true);
    assert.equal(await passphrase, undefined);
  });

  it("nobody answers: refused after 30 s, not before", async () => {
    const { questions, clock } = stand();
    const confirmation = questions.confirm(QUESTION, live());
    const passphrase = questions.passphrase({ ...KEY, wrongBefore: false }, live());
    clock.advance(29_999);
    assert.equal(questions.open().length, 2);
    clock.advance(1);
    assert.equal(await confirmation, false);
    assert.equal(await passphrase, undefined);
    assert.deepEqual(questions.open(), []);
  });

  it("equal questions are one, and each caller can leave", async () => {
    const { questions, announced, only } = stand();
    const leaving = new AbortController();
    const first = questions.confirm(QUESTION, leaving.signal);
    const second = questions.confirm({ ...QUESTION }, live());
    const other = questions.confirm({ ...QUESTION, facts: [] }, live());
    assert.equal(questions.open().length, 2);
    leaving.abort();
    assert.equal(await first, false);
    assert.equal(questions.open().length, 2);
    assert.equal(questions.answer(only(), { confirmed: true }), true);
    assert.equal(await second, true);
    assert.equal(questions.answer(only(), { confirmed: true }), true);
    assert.equal(await other, true);
    assert.equal(announced.length, 2);
  });

  it("a question without a caller ends", async () => {
    const { questions } = stand();
    const leaving = new AbortController();
    const result = questions.confirm(QUESTION, leaving.signal);
    leaving.abort();
    assert.equal(await result, false);
    assert.deepEqual(questions.open(), []);
    assert.equal(await questions.confirm(QUESTION, AbortSignal.abort()), false);
  });

  it("more than 32 questions are refused immediately", async () => {
    const { questions } = stand();
    const asked = Array.from({ length: 32 }, (_, at) =>
      questions.confirm({ ...QUESTION, fingerprint: String(at) }, live()),
    );
    assert.equal(await questions.confirm(QUESTION, live()), false);
    assert.equal(questions.open().length, 32);
    questions.refuseAll();
    assert.deepEqual(
      await Promise.all(asked),
      Array.from({ length: 32 }, () => false),
    );
  });

  it("listeners hear of each change until their signal fires", async () => {
    const { questions } = stand();
    let heard = 0;
    const stop = new AbortController();
    questions.onChange(() => heard++, stop.signal);
    const result = questions.confirm(QUESTION, live());
    assert.equal(heard, 1);
    questions.refuseAll();
    assert.equal(heard, 2);
    stop.abort();
    assert.equal(await result, false);
    const later = questions.confirm(QUESTION, live());
    questions.refuseAll();
    await later;
    assert.equal(heard, 2);
  });
});

describe("WaitingQuestions with SSH_ASKPASS", () => {
  it("asks with one prompt at a time, and an answer of the page ends the prompt", async () => {
    const askpass = new TestAskpass();
    const { questions, announced, only } = stand(askpass);
    const first = questions.confirm(QUESTION, live());
    const second = questions.passphrase({ ...KEY, wrongBefore: false }, live());
    await until(async () => askpass.prompts.length === 1);
    assert.match(askpass.prompts[0]?.prompt ?? "", /^Allow the use/);
    assert.equal(questions.answer(only(), { confirmed: true }), true);
    assert.equal(await first, true);
    assert.equal(askpass.prompts[0]?.signal.aborted, true);
    await until(async () => askpass.prompts.length === 2);
    askpass.prompts[1]?.answer({ text: PASSPHRASE });
    assert.equal((await second)?.reveal(), "correct horse");
    assert.deepEqual(announced, []);
  });

  it("empty output and yes confirm; other output and errors refuse", async () => {
    for (const [output, allowed] of [
      ["", true],
      ["yes", true],
      ["YES", true],
      ["no", false],
      ["yes please", false],
      ["\u0007garbage", false],
    ] as const) {
      const { questions } = stand({ ask: async () => ({ text: new Secret(output) }) });
      assert.equal(await questions.confirm(QUESTION, live()), allowed, output);
    }
    const { questions } = stand({ ask: async () => "refused" });
    assert.equal(await questions.confirm(QUESTION, live()), false);
    assert.equal(await questions.passphrase({ ...KEY, wrongBefore: false }, live()), undefined);
  });

  it("an empty passphrase is a refusal", async () => {
    const { questions } = stand({ ask: async () => ({ text: new Secret("") }) });
    assert.equal(await questions.passphrase({ ...KEY, wrongBefore: false }, live()), undefined);
  });

  it("a program that hangs is ended after 30 s, and the next question is asked", async () => {
    const askpass = new TestAskpass();
    const { questions, clock } = stand(askpass);
    const hanging = questions.confirm(QUESTION, live());
    await until(async () => askpass.prompts.length === 1);
    clock.advance(30_000);
    assert.equal(await hanging, false);
    assert.equal(askpass.prompts[0]?.signal.aborted, true);
    const next = questions.confirm(QUESTION, live());
    await until(async () => askpass.prompts.length === 2);
    askpass.prompts[1]?.answer({ text: new Secret("yes") });
    assert.equal(await next, true);
  });

  it("a program that cannot be run leaves the question to the page", async () => {
    const { questions, announced, only } = stand({ ask: async () => "not_started" });
    const result = questions.confirm(QUESTION, live());
    await until(async () => announced.length === 1);
    assert.equal(questions.answer(only(), { confirmed: true }), true);
    assert.equal(await result, true);
  });

  it("a program whose start throws refuses the question", async () => {
    const { questions } = stand({ ask: () => Promise.reject(new Error("broken")) });
    assert.equal(await questions.confirm(QUESTION, live()), false);
  });
});
