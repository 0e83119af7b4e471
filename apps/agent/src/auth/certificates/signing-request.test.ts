import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import { signingRequest } from "./signing-request.ts";

const KEYS = {
  "ec 256": generateKeyPairSync("ec", { namedCurve: "P-256" }),
  "ec 384": generateKeyPairSync("ec", { namedCurve: "P-384" }),
  "rsa 2048": generateKeyPairSync("rsa", { modulusLength: 2048 }),
};

describe("signingRequest", () => {
  for (const [name, keys] of Object.entries(KEYS)) {
    it(`${name}: openssl verifies it and reads the name`, () => {
      const input = signingRequest("Ada Lövelace", keys);
      const args = ["req", "-verify", "-noout", "-subject", "-nameopt", "utf8"];
      const told = execFileSync("openssl", args, {
        input,
        encoding: "utf8",
        stdio: ["pipe", "pipe", "pipe"],
      });
      assert.match(told, /subject=CN ?= ?Ada Lövelace/);
    });
  }
});
