import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { mountStand, python, type MountStand } from "./agent-mount-stand.ts";
import { APP_FILES, assertReading, LARGE_VALUE, READING_CASES } from "./agent-mount-tools/reading-cases.ts";
import { titleOf } from "./agent-mount-tools/table.ts";

const TIMEOUT_MS = 480_000;

/** Gets the size of each file of a folder, while a timer interrupts the program every half millisecond. */
const INTERRUPTED = `
import os, signal, sys
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
sizes = sum(os.stat(f"{sys.argv[1]}/{index}.json").st_size for index in range(100))
signal.setitimer(signal.ITIMER_REAL, 0)
print(sizes)
`;

describe("programs that read the mount", { timeout: TIMEOUT_MS }, () => {
  let stand: MountStand;
  before(async () => {
    stand = await mountStand("agent-mount-tools", "layout: both, cache_ttl: 5m");
    await stand.store("app/files", JSON.stringify(APP_FILES));
    await stand.store("demo/large", JSON.stringify({ value: LARGE_VALUE }));
  });
  after(() => stand.remove());

  for (const given of READING_CASES)
    it(`${titleOf(given.row)} [agent 38.9]`, () => assertReading(stand, given));

  it("gives no EINTR to a program with a timer, which does not expect it of stat [agent 38.9]", async () => {
    for (let index = 0; index < 100; index++) await stand.store(`many/${index}`, '{"a":"b"}');
    assert.equal(Number(await python(INTERRUPTED, stand.at("many"))), 100 * '{\n  "a": "b"\n}\n'.length);
  });
});
