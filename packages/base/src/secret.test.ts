import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { format, inspect } from "node:util";
import { Secret, createLogger } from "./index.ts";

const VALUE = "hunter2-secret";

describe("Secret", () => {
  const secret = new Secret(VALUE);

  it("gives its value only through reveal()", () => assert.equal(secret.reveal(), VALUE));

  const printed: Record<string, string> = {
    concatenation: "".concat(secret as unknown as string),
    "String()": String(secret),
    JSON: JSON.stringify({ secret }),
    inspect: inspect({ secret }, { showHidden: true, depth: 5 }),
    "format %o": format("%o %s %j", secret, secret, secret),
    "Object.values": Object.values(secret).join(""),
    "Object.entries": JSON.stringify(Object.fromEntries(Object.entries(secret))),
  };
  for (const [way, text] of Object.entries(printed)) {
    it(`does not print by ${way} [agent 18.4]`, () => assert.doesNotMatch(text, /hunter2/));
  }

  it("does not print in a log line", () => {
    let line = "";
    const logger = createLogger({ format: "json", destination: { write: (text) => (line += text) } });
    logger.error({ secret, err: secret, nested: { secret } }, "planted");
    assert.match(line, /planted/);
    assert.doesNotMatch(line, /hunter2/);
  });
});
