import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  loopSeconds,
  run,
  schemathesisPython,
  tempFolder,
  testSeed,
  type TempFolder,
} from "@devplat/testkit";
import { startAdminStand, type AdminStand } from "./svc-admin-stand.ts";

/** Examples of one operation for each second that the loop may take: two dozen operations make some 500 requests a second. */
const EXAMPLES_PER_SECOND = 2;

/** Milliseconds for one run, on a machine that does other things too. */
const RUN_LIMIT_MS = 240_000;

/** The document does not describe which values of the right form are refused for their meaning (422). */
const NOT_DESCRIBED = "positive_data_acceptance";
/** Operations that would end the session or token of the run. */
const ENDS_THE_RUN = ["/auth/logout", "/api/sessions", "/api/sessions/{id}"];
/** The pattern of its user name is one that the tool's own language has no words for. */
const NOT_UNDERSTOOD = "/auth/test-login";

/** Its own list of refusals lacks the one of a body that is too large (413). */
const SETTINGS = `
[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 422, 428, 429]
`;

describe("administration API against its own OpenAPI document (schemathesis)", { timeout: 500_000 }, () => {
  let stand: AdminStand;
  let folder: TempFolder;
  before(async () => {
    stand = await startAdminStand();
    folder = await tempFolder("schemathesis");
    await writeFile(join(folder.path, "schemathesis.toml"), SETTINGS);
  });
  after(async () => {
    await stand?.stop();
    await folder?.remove();
  });

  const hold = async (token: string, phases: string, share: number): Promise<void> => {
    const examples = Math.max(5, Math.round(loopSeconds(share) * EXAMPLES_PER_SECOND));
    const { code, stdout } = await run(
      schemathesisPython(),
      [
        "-m",
        "schemathesis.cli",
        "run",
        `${stand.svc.url}/api/openapi.json`,
        `--header=Authorization: Bearer ${token}`,
        `--phases=${phases}`,
        "--checks=all",
        `--exclude-checks=${NOT_DESCRIBED}`,
        `--max-examples=${examples}`,
        `--seed=${testSeed()}`,
        ...[...ENDS_THE_RUN, NOT_UNDERSTOOD].map((path) => `--exclude-path=${path}`),
        "--exclude-operation-id=revokeAdminToken",
        "--no-color",
      ],
      // It keeps what it found in its folder, and reads its configuration from there.
      { cwd: folder.path, timeoutMs: RUN_LIMIT_MS },
    );
    // A body of a megabyte that is found wrong would be shown whole.
    const report = stdout.split("\n").map((line) => line.slice(0, 500));
    assert.equal(code, 0, report.join("\n"));
    assert.match(stdout, /\d+ generated/);
  };

  it("as an admin: the document describes each response, and none is a server error [svc 6.13]", async () => {
    const made = await stand.call("POST", "/api/admin-tokens", { name: "contract", duration: "1h" });
    await hold(String(made.body["token"]), "examples,coverage,fuzzing", 0.005);
    assert.doesNotMatch(stand.svc.log(), /an administration request failed/);
  });

  it("as a user: operations of admins are refused, and no other fault occurs", async () => {
    const login = await stand.call("POST", "/auth/test-login", { username: "ann", role: "user" }, "");
    // Most is refused before it is looked at: a few requests of each kind show it.
    await hold(String(login.body["session_token"]), "examples,fuzzing", 0.002);
    assert.doesNotMatch(stand.svc.log(), /an administration request failed/);
  });
});
