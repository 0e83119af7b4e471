import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parseConfigDocument } from "@devplat/config/document";
import { schemaFaults } from "../surfaces/http-api/schema.test-kit.ts";
import { EVERY_SECTION } from "./every-section.test-kit.ts";
import { configJsonSchema } from "./json-schema.ts";
import { STARTER_CONFIG } from "./starter.ts";

const PUBLISHED = join(import.meta.dirname, "../../../../docs/agent-config.schema.json");

function faults(text: string): string[] {
  return schemaFaults(parseConfigDocument("c.yaml", text).value, configJsonSchema(), {});
}

describe("the published JSON Schema of the configuration", () => {
  it("is the output of 'agent config schema'; update it by writing that to the file [agent 3.18]", async () => {
    assert.deepEqual(JSON.parse(await readFile(PUBLISHED, "utf8")), configJsonSchema());
  });

  it("takes what 'agent init' writes, and every section [agent 3.18]", () => {
    assert.deepEqual(faults(STARTER_CONFIG), []);
    assert.deepEqual(faults(EVERY_SECTION), []);
  });

  for (const name of [
    "agent-source-unknown",
    "api-offers-unknown",
    "enrolment-engine-unknown",
    "key-unknown",
    "ssh-key-unknown",
    "store-auth-method-unknown",
    "value-of-wrong-type",
    "rule-mode-without-quotes",
  ]) {
    it(`refuses ${name.replaceAll("-", " ")}`, async () => {
      const text = await readFile(join(import.meta.dirname, `faults/${name}.faulty`), "utf8");
      assert.notDeepEqual(faults(text), []);
    });
  }

  it("says how durations and modes are written", () => {
    interface Shape {
      readonly properties: {
        readonly sync: { readonly properties: { readonly interval: { readonly pattern: string } } };
      };
    }
    const { pattern } = (configJsonSchema() as unknown as Shape).properties.sync.properties.interval;
    for (const text of ["15m", "1h30m", "1.5h", "500ms", "7d"]) assert.match(text, new RegExp(pattern));
    for (const text of ["15", "m", "15 m", ""]) assert.doesNotMatch(text, new RegExp(pattern));
  });
});
