import assert from "node:assert/strict";
import { it } from "node:test";
import { ResponsePart } from "./response.ts";
import { readTokenInfo } from "./token-info.ts";

it("readTokenInfo: a very long time to live ends at a valid time", () => {
  const data = ResponsePart.parse('{"ttl": 9007199254740991, "creation_ttl": 9007199254740991}', "a token");
  const { expiresAt } = readTokenInfo(data, Date.UTC(2026, 0, 1));
  assert.match(new Date(expiresAt ?? NaN).toISOString(), /^\+275760-/);
});
