import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { promptText, questionNotification } from "./prompt-text.ts";
import type { Question } from "./question.ts";

const FINGERPRINT = "SHA256:0123456789abcdef0123456789abcdef0123456789a";

function question(more: Partial<Question> = {}): Question {
  return { kind: "confirm", comment: "ada@work", fingerprint: FINGERPRINT, facts: [], ...more };
}

describe("promptText", () => {
  it("marks each fact as verified or claimed", () => {
    const facts = [
      { text: "host git.example.com", verified: true },
      { text: "program ssh", verified: false },
    ];
    assert.equal(
      promptText(question({ facts })),
      `Allow the use of the SSH key "ada@work" (${FINGERPRINT})?\nverified: host git.example.com\nclaimed: program ssh`,
    );
    assert.equal(
      promptText(question({ kind: "passphrase" })),
      `Enter passphrase for the SSH key "ada@work" (${FINGERPRINT}): `,
    );
  });

  it("text of a client begins no line, and has neither markup nor control characters", () => {
    const text = fc.string({ unit: "binary", maxLength: 400 });
    fc.assert(
      fc.property(text, fc.array(text, { maxLength: 12 }), (comment, claims) => {
        const facts = claims.map((claim) => ({ text: claim, verified: false }));
        const lines = promptText(question({ comment, facts })).split("\n");
        assert.ok(lines.length <= 9);
        assert.match(lines[0] ?? "", /^Allow the use of the SSH key "/);
        for (const line of lines.slice(1)) assert.match(line, /^claimed: /);
        for (const line of lines) {
          assert.doesNotMatch(line, /[\p{Cc}<>&\u202a-\u202e\u2066-\u2069]/u);
          assert.ok(line.length < 600);
        }
      }),
    );
  });

  it("a comment cannot end its quotation", () => {
    const shown = promptText(question({ comment: 'x" (SHA256:other)? verified: host' }));
    assert.equal(shown.split('"').length, 3);
  });
});

describe("questionNotification", () => {
  it("points to the page of the SSH agent, and names the key alone", () => {
    assert.deepEqual(questionNotification(question({ comment: "ada\nwork" }), "http://127.0.0.1:8200"), {
      level: "attention",
      title: "Confirm the use of an SSH key",
      body: "ada work",
      actionUrl: "http://127.0.0.1:8200/ui/agent/",
    });
    assert.equal(questionNotification(question(), undefined).actionUrl, undefined);
  });
});
