import { after, before, describe, it } from "node:test";
import { OpensshRegress } from "./openssh-regress-stand.ts";
import { assertPasses } from "./openssh-regress.ts";

describe("OpenSSH's own tests of agents, with all chains of hosts", () => {
  let regress: OpensshRegress;
  before(async () => {
    regress = await OpensshRegress.start();
  });
  after(() => regress.stop());

  it("agent-restrict.sh passes as a whole", () => assertPasses(regress, "agent-restrict.sh, whole"));
});
