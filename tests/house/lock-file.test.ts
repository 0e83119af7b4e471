import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ROOT } from "./sources.ts";

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly optionalDependencies?: Record<string, string>;
}

describe("package-lock.json", () => {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, Locked>;
  };

  it("locks the optional packages of every platform, which npm ci requires", () => {
    // npm leaves out those that it could not fetch when it wrote the file.
    const lacking = Object.entries(lock.packages).flatMap(([at, entry]) =>
      Object.keys(entry.optionalDependencies ?? {}).filter(
        (name) =>
          lock.packages[`node_modules/${name}`] === undefined &&
          lock.packages[`${at}/node_modules/${name}`] === undefined,
      ),
    );
    assert.deepEqual(lacking, []);
  });

  it("names no registry", () => {
    const naming = Object.entries(lock.packages).filter(([, { resolved }]) => resolved?.startsWith("http"));
    assert.deepEqual(
      naming.map(([name]) => name),
      [],
    );
  });
});
