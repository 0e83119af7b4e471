import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { embeddedSignIn, type SignIn } from "../../../auth/sign-in.ts";
import { parseConfig } from "../../../config/load.ts";
import { ForwardsSurface, type ForwardsSurfaceParts } from "./forwards-surface.ts";

const configOf = (ssh: string) =>
  parseConfig({ path: "config.yaml", text: `store: { driver: embedded }\nssh: ${ssh}\n` });

/** A surface over parts that only note their calls. */
class Stand {
  readonly calls: string[] = [];
  authenticated = false;
  changed = (): void => undefined;
  leftovers: Promise<void> = Promise.resolve();
  readonly surface: ForwardsSurface;

  constructor() {
    const note = (name: string) => async (): Promise<void> => void this.calls.push(name);
    const signIn: Pick<SignIn, "state" | "onChange"> = {
      state: () => ({ ...embeddedSignIn.state(), authenticated: this.authenticated }),
      onChange: (listener) => (this.changed = listener),
    };
    this.surface = new ForwardsSurface({
      remotes: { reload: note("reload"), begin: note("begin"), stop: note("remotes stop"), list: () => [] },
      forwards: { retry: (cause: string) => this.calls.push(`retry ${cause}`), stop: note("forwards stop") },
      folder: { endLeftovers: async () => (await note("leftovers")(), await this.leftovers) },
      lender: { start: () => void this.calls.push("lender start"), stop: note("lender stop") },
      signIn,
      settings: configOf("{}").ssh,
      logger: silentLogger,
    } as unknown as ForwardsSurfaceParts);
  }

  /** The sign-in changes. */
  signIn(authenticated: boolean): void {
    this.authenticated = authenticated;
    this.changed();
  }
}

describe("ForwardsSurface", () => {
  it("ends what was left, then recovers tokens, then waits for the first sign-in", async () => {
    const stand = new Stand();
    await stand.surface.start();
    assert.deepEqual(stand.calls, ["leftovers", "lender start", "reload"]);
    stand.signIn(false);
    assert.equal(stand.calls.length, 3);
    stand.signIn(true);
    assert.equal(stand.calls.at(-1), "begin");
  });

  it("a sign-in that is lost and comes back changes nothing", async () => {
    const stand = new Stand();
    stand.authenticated = true;
    await stand.surface.start();
    const before = [...stand.calls];
    assert.equal(before.at(-1), "begin");
    stand.signIn(false);
    stand.signIn(true);
    assert.deepEqual(stand.calls, before);
  });

  it("leftovers that cannot be ended do not keep it from its start", async () => {
    const stand = new Stand();
    stand.leftovers = Promise.reject(new Error("no ssh"));
    await stand.surface.start();
    assert.deepEqual(stand.calls, ["leftovers", "lender start", "reload"]);
  });

  it("another ssh section connects again; any other change does not", async () => {
    const stand = new Stand();
    await stand.surface.start();
    stand.calls.length = 0;
    await stand.surface.reconcile(configOf("{}"));
    assert.deepEqual(stand.calls, ["reload"]);
    await stand.surface.reconcile(configOf("{ use_ssh_config: false }"));
    assert.deepEqual(stand.calls, ["reload", "reload", "retry edit"]);
    await stand.surface.reconcile(configOf("{ use_ssh_config: false }"));
    assert.equal(stand.calls.length, 4);
  });

  it("the end ends forwards before the lender, and no sign-in starts them again", async () => {
    const stand = new Stand();
    await stand.surface.start();
    await stand.surface.stop();
    assert.deepEqual(stand.calls.slice(-3), ["remotes stop", "forwards stop", "lender stop"]);
    stand.signIn(true);
    assert.equal(stand.calls.at(-1), "lender stop");
  });
});
