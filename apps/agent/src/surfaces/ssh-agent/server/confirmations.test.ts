import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HandClock } from "../../../sync/clock.test-kit.ts";
import type { PeerProcess } from "../peer-process/peer-process.ts";
import { Confirmations, type Confirmation } from "./confirmations.ts";
import { TestQuestions } from "./ssh-agent.test-kit.ts";

const MINUTE_MS = 60_000;

const caller = (changes: Partial<PeerProcess> = {}): PeerProcess => ({
  pid: 70,
  startTime: "700",
  name: "ssh",
  program: "/usr/bin/ssh",
  parent: 60,
  session: 50,
  isBackground: false,
  isZombie: false,
  sessionStart: "500",
  ancestors: [],
  ...changes,
});
const confirmation = (changes: Partial<Confirmation> = {}, fingerprint = "SHA256:a"): Confirmation => ({
  question: { comment: "mine", fingerprint, facts: [] },
  caller: caller(),
  destination: "web",
  ...changes,
});
const live = (): AbortSignal => new AbortController().signal;

function stand(): { questions: TestQuestions; confirmations: Confirmations; advance: (ms: number) => void } {
  const clock = new HandClock();
  const questions = new TestQuestions();
  const confirmations = new Confirmations(questions, clock);
  return { questions, confirmations, advance: (ms) => clock.advance(ms) };
}

/** Questions whose answers a test gives later. */
function holding(questions: TestQuestions): ((answer: boolean) => void)[] {
  const answers: ((answer: boolean) => void)[] = [];
  questions.answerWith = async () => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    answers.push(resolve);
    return await promise;
  };
  return answers;
}

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
};

describe("Confirmations", () => {
  it("an authorization counts for ten minutes, a refusal for one", async () => {
    for (const [answer, minutes] of [
      [true, 10],
      [false, 1],
    ] as const) {
      const { questions, confirmations, advance } = stand();
      questions.answerWith = async () => answer;
      assert.equal(await confirmations.confirm(confirmation(), live()), answer);
      advance(minutes * MINUTE_MS - 1);
      assert.equal(await confirmations.confirm(confirmation(), live()), answer);
      assert.equal(questions.asked.length, 1);
      advance(1);
      await confirmations.confirm(confirmation(), live());
      assert.equal(questions.asked.length, 2);
    }
  });

  const others: [name: string, Confirmation][] = [
    ["another session", confirmation({ caller: caller({ session: 51 }) })],
    ["another leader under the same PID", confirmation({ caller: caller({ sessionStart: "501" }) })],
    ["another program", confirmation({ caller: caller({ program: "/tmp/ssh" }) })],
    ["another destination", confirmation({ destination: "db" })],
    ["another key", confirmation({}, "SHA256:b")],
    ["a program that cannot be seen", confirmation({ caller: caller({ program: undefined }) })],
    ["a session whose leader has ended", confirmation({ caller: caller({ sessionStart: undefined }) })],
    ["a process that cannot be seen", confirmation({ caller: undefined })],
  ];
  for (const [name, other] of others) {
    it(`an answer does not count for ${name}`, async () => {
      const { questions, confirmations } = stand();
      await confirmations.confirm(confirmation(), live());
      await confirmations.confirm(other, live());
      assert.equal(questions.asked.length, 2);
    });
  }

  it("an answer counts for another process of the same program and session", async () => {
    const { questions, confirmations } = stand();
    await confirmations.confirm(confirmation(), live());
    await confirmations.confirm(confirmation({ caller: caller({ pid: 71, startTime: "701" }) }), live());
    assert.equal(questions.asked.length, 1);
  });

  it("a caller that cannot be seen is asked about each time, also concurrently", async () => {
    const { questions, confirmations } = stand();
    const unseen = confirmation({ caller: undefined });
    await Promise.all([confirmations.confirm(unseen, live()), confirmations.confirm(unseen, live())]);
    await confirmations.confirm(unseen, live());
    assert.equal(questions.asked.length, 3);
  });

  it("concurrent requests share a question, and each one can leave", async () => {
    const { questions, confirmations } = stand();
    const answers = holding(questions);
    const leaving = new AbortController();
    const first = confirmations.confirm(confirmation(), leaving.signal);
    const second = confirmations.confirm(confirmation(), live());
    await settled();
    assert.equal(questions.asked.length, 1);
    leaving.abort();
    await assert.rejects(first);
    answers[0]?.(true);
    assert.equal(await second, true);
  });

  it("a question that nobody waits for any more is withdrawn", async () => {
    const { questions, confirmations } = stand();
    let withdrawn: AbortSignal | undefined;
    questions.answerWith = async (_question, signal) => {
      withdrawn = signal;
      return await new Promise<boolean>(() => undefined);
    };
    const leaving = new AbortController();
    const asked = confirmations.confirm(confirmation(), leaving.signal);
    await settled();
    assert.equal(withdrawn?.aborted, false);
    leaving.abort();
    await assert.rejects(asked);
    assert.equal(withdrawn?.aborted, true);
    // The next one is asked about again.
    questions.answerWith = async () => true;
    assert.equal(await confirmations.confirm(confirmation(), live()), true);
    assert.equal(questions.asked.length, 2);
  });

  it("a question that nobody answers is refused after 30 s", async () => {
    const { questions, confirmations, advance } = stand();
    holding(questions);
    let answer: boolean | undefined;
    const waiting = confirmations.confirm(confirmation(), live()).then((given) => (answer = given));
    advance(29_999);
    await settled();
    assert.equal(answer, undefined);
    advance(1);
    await waiting;
    assert.equal(answer, false);
  });

  it("background requests share a question across sessions, and are put one by one", async () => {
    const { questions, confirmations } = stand();
    const answers = holding(questions);
    const background = (session: number, destination: string): Promise<boolean> =>
      confirmations.confirm(
        confirmation({
          caller: caller({ session, sessionStart: `${session}`, isBackground: true }),
          destination,
        }),
        live(),
      );
    const results = [background(1, "web"), background(2, "web"), background(3, "db")];
    const inFront = confirmations.confirm(confirmation({ destination: "front" }), live());
    await settled();
    // The first background question, and the one of the terminal, which does not wait for it.
    assert.equal(questions.asked.length, 2);
    for (const answer of answers) answer(true);
    assert.equal(await inFront, true);
    await Promise.all(results.slice(0, 2));
    await settled();
    assert.equal(questions.asked.length, 3);
    answers[2]?.(false);
    assert.deepEqual(await Promise.all(results), [true, true, false]);
  });

  it("a question that fails after its caller has left harms nobody", async () => {
    const { questions, confirmations } = stand();
    questions.answerWith = async () => {
      throw new Error("a fault of the program");
    };
    await assert.rejects(confirmations.confirm(confirmation({ caller: undefined }), AbortSignal.abort()));
    await assert.rejects(confirmations.confirm(confirmation(), live()), /a fault of the program/);
  });

  it("forgets its answers when it is cleared", async () => {
    const { questions, confirmations } = stand();
    await confirmations.confirm(confirmation(), live());
    confirmations.clear();
    await confirmations.confirm(confirmation(), live());
    assert.equal(questions.asked.length, 2);
  });
});
