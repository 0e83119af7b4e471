import { after, before, describe, it } from "node:test";
import { OpensshRegress } from "./openssh-regress-stand.ts";
import { assertPasses } from "./openssh-regress.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 1_200_000;

describe("OpenSSH's own tests of agents", { timeout: TIMEOUT_MS }, () => {
  let regress: OpensshRegress;
  before(async () => {
    regress = await OpensshRegress.start();
  });
  after(() => regress.stop());

  for (const script of ["agent.sh", "agent-restrict.sh", "agent-getpeereid.sh"] as const) {
    it(`${script} passes`, () => assertPasses(regress, script));
  }
});
