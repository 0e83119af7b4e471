import { describe, it } from "node:test";
import { assertManyOpens } from "./agent-mount-opens.ts";

describe("many opens on the mount", { timeout: 300_000 }, () => {
  it("leave nothing in memory, and are few lines of the log", () => assertManyOpens(5000));
});
