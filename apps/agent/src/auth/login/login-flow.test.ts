import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { AgentError } from "../../errors.ts";
import { LoginFlow, type LoginState } from "./login-flow.ts";

/** Asks for passcodes until the right one comes. */
function withPasscode(limitMs?: number): { flow: LoginFlow<string>; states: LoginState["kind"][] } {
  const states: LoginState["kind"][] = [];
  const flow = new LoginFlow(async (steps) => {
    steps.show({ kind: "waiting_push", methods: ["duo"] });
    await Promise.resolve();
    for (let refused = false; ; refused = true) {
      const code = await steps.passcode("totp", refused);
      if (code.reveal() === "123456") return "in";
    }
  }, limitMs);
  flow.onChange(() => states.push(flow.state().kind));
  return { flow, states };
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("LoginFlow", () => {
  it("goes from push to passcode, takes another after a wrong one, and is done", async () => {
    const { flow, states } = withPasscode();
    assert.equal(flow.submitPasscode(new Secret("early")), false, "nothing is asked for yet");
    await turn();
    assert.deepEqual(flow.state(), { kind: "passcode", method: "totp", refused: false });
    assert.equal(flow.submitPasscode(new Secret("wrong")), true);
    await turn();
    assert.deepEqual(flow.state(), { kind: "passcode", method: "totp", refused: true });
    flow.submitPasscode(new Secret("123456"));
    assert.equal(await flow.done, "in");
    assert.deepEqual(states.slice(-2), ["starting", "done"]);
  });

  it("ends as cancelled when the user gives up, and as failed when the time is over [agent 10.11]", async () => {
    const { flow } = withPasscode();
    await turn();
    flow.cancel();
    await assert.rejects(flow.done, { code: "login_cancelled" });
    assert.equal(flow.state().kind, "failed");
    const late = withPasscode(1).flow;
    await assert.rejects(late.done, { code: "login_failed" });
  });

  it("ends also when the user gives up before the passcode is asked for [agent 10.11]", async () => {
    const { flow } = withPasscode();
    flow.cancel();
    await assert.rejects(flow.done, { code: "login_cancelled" });
    assert.equal(flow.state().kind, "failed");
  });

  it("has five minutes [agent 10.11]", async (t) => {
    const asked: number[] = [];
    t.mock.method(AbortSignal, "timeout", (ms: number) => {
      asked.push(ms);
      return new AbortController().signal;
    });
    const { flow } = withPasscode();
    await turn();
    flow.cancel();
    await assert.rejects(flow.done);
    assert.deepEqual(asked, [5 * 60_000]);
  });

  it("says why it failed, and of a fault of the program nothing that it may quote", async () => {
    const refused = new LoginFlow(() => Promise.reject(new AgentError("login_failed", "no such user")));
    await refused.done.catch(() => undefined);
    assert.deepEqual(refused.state(), { kind: "failed", reason: "no such user" });
    const broken = new LoginFlow(() => Promise.reject(new TypeError("hunter2")));
    await broken.done.catch(() => undefined);
    assert.deepEqual(broken.state(), { kind: "failed", reason: "internal error (TypeError)" });
  });
});
