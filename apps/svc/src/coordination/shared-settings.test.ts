import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configSchema } from "../config/schema.ts";
import { differingSettings, settingsDigests } from "./shared-settings.ts";

describe("differingSettings", () => {
  const instance = (cache: object, host: object = {}, manifestKeyId?: string) => ({
    settingsDigests: settingsDigests(configSchema.parse({ cache: { enabled: true, ...cache }, host })),
    manifestKeyId,
  });
  const bucket = { object_bucket: "one", object_endpoint: "https://s3.example", storage_path: "/team/" };
  const base = instance(bucket, {}, "key 1");

  it("names each setting that decides which data is shared", () => {
    const rows: readonly (readonly [ReturnType<typeof instance>, readonly string[]])[] = [
      [instance({ ...bucket, object_bucket: "two" }), ["cache.object_bucket"]],
      [instance({ ...bucket, object_endpoint: "https://s3.other" }), ["cache.object_endpoint"]],
      [instance({ ...bucket, storage_path: "other" }), ["cache.storage_path"]],
      [instance({ ...bucket, object_hide_names: true }), ["cache.object_hide_names"]],
      [instance(bucket, { url: "https://code.example" }), ["host.url"]],
      [instance(bucket, {}, "key 2"), ["cache.object_key"]],
      [instance({}), ["cache.object_bucket"]],
      [instance({ ...bucket, enabled: false }), ["cache.object_bucket"]],
    ];
    for (const [other, expected] of rows) {
      assert.deepEqual(differingSettings(base, other), expected);
      assert.deepEqual(differingSettings(other, base), expected);
    }
  });

  it("settings that mean the same do not differ", () => {
    const same = instance({ ...bucket, storage_path: "team", object_region: "eu-west-3" }, {}, "key 1");
    assert.deepEqual(differingSettings(base, same), []);
    // Without a bucket each instance has a folder of its own.
    assert.deepEqual(
      differingSettings(instance({ storage_path: "/a" }), instance({ storage_path: "/b" })),
      [],
    );
  });

  it("compares the origin of the endpoint, and the text of the host", () => {
    const here = { ...bucket, object_endpoint: "https://S3.example:443/" };
    assert.deepEqual(differingSettings(base, instance(here, {}, "key 1")), []);
    const [lower, upper] = ["https://code.example", "https://Code.example"].map((url) =>
      instance(bucket, { url }),
    );
    assert.deepEqual(differingSettings(lower!, upper!), ["host.url"]);
  });

  it("without an endpoint the region is part of the address", () => {
    const aws = { object_bucket: "one" };
    const other = instance({ ...aws, object_region: "eu-west-3" });
    assert.deepEqual(differingSettings(instance(aws), other), ["cache.object_endpoint"]);
  });

  it("an instance that reports nothing, or in another form, differs in nothing", () => {
    for (const text of [undefined, "", "[]", "{", '{"cache.object_bucket":1}', '{"later.setting":"0"}']) {
      const other = { settingsDigests: text, manifestKeyId: undefined };
      assert.deepEqual(differingSettings(base, other), []);
    }
  });
});
