import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Machine } from "./machine.ts";

describe("the machine of the release tests", () => {
  let machine: Machine;
  before(async () => {
    machine = await Machine.boot();
  });
  after(async () => machine?.stop());

  it("boots with systemd as PID 1, and has no failed unit", async () => {
    assert.equal(await machine.must(["cat", "/proc/1/comm"]), "systemd");
    assert.equal(await machine.must(["systemctl", "--failed", "--no-legend", "--plain"]), "");
  });

  it("has a service manager of an ordinary user, which runs a unit", async () => {
    await machine.addUser();
    const unit = ["systemd-run", "--user", "--wait", "--pipe", "--quiet", "id", "-un"];
    assert.equal(await machine.must(unit, { account: "user" }), "ada");
  });
});
