import { after, before, describe, it } from "node:test";
import { CHECK_OUT_CASES } from "./clients/check-out-cases.ts";
import { EVERYDAY_CASES } from "./clients/everyday-cases.ts";
import { startClientStand, type ClientStand } from "./clients/stand.ts";
import { titleOf } from "./clients/table.ts";

describe("stock git", () => {
  let stand: ClientStand;
  before(async () => {
    stand = await startClientStand();
  });
  after(() => stand.stop());

  for (const given of [...CHECK_OUT_CASES, ...EVERYDAY_CASES]) {
    it(titleOf(given.row), () => stand.assertRow(given));
  }
});
