import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { AgentError } from "../../../errors.ts";
import { runFusermount } from "./fusermount.ts";

describe("runFusermount", () => {
  for (const [title, mode, reason] of [
    ["says that there is no fusermount3", undefined, "cannot mount /m: there is no fusermount3"],
    ["says that it cannot be run", 0o600, "cannot mount /m: fusermount3 cannot be run (EACCES)"],
    ["hands on what it has written", 0o700, "cannot mount /m: no luck"],
  ] as const) {
    it(title, async (context) => {
      const folder = await mkdtemp(join(tmpdir(), "fusermount-"));
      const path = process.env["PATH"];
      context.after(async () => {
        process.env["PATH"] = path;
        await rm(folder, { recursive: true });
      });
      const program = join(folder, "fusermount3");
      if (mode !== undefined) {
        await writeFile(program, "#!/bin/sh\necho no luck >&2\nexit 1\n");
        await chmod(program, mode);
      }
      process.env["PATH"] = folder;
      await assert.rejects(runFusermount([], "/m"), (error: unknown) => {
        assert.ok(error instanceof AgentError);
        assert.equal(error.message, reason);
        if (mode !== 0o700) assert.match(error.hint ?? "", /fuse3/);
        return true;
      });
    });
  }
});
