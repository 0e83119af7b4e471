import { describe, it } from "node:test";
import { assertManyOpens } from "./agent-mount-opens.ts";

describe("100,000 opens on the mount", () => {
  it("leave nothing in memory, and are few lines of the log", () => assertManyOpens(100_000));
});
