import { after, before, describe, it } from "node:test";
import { mountStand, type MountStand } from "./agent-mount-stand.ts";
import { APP_FILES, assertReading, LARGE_VALUE, READING_CASES } from "./agent-mount-tools/reading-cases.ts";
import { titleOf } from "./agent-mount-tools/table.ts";

const TIMEOUT_MS = 480_000;

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
});
