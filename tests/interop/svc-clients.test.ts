import { after, before, describe, it } from "node:test";
import { PROGRAM_CASES } from "./clients/program-cases.ts";
import { startClientStand, type ClientStand } from "./clients/stand.ts";
import { titleOf } from "./clients/table.ts";

describe("git clients of other makes", () => {
  let stand: ClientStand;
  before(async () => {
    stand = await startClientStand();
  });
  after(() => stand.stop());

  for (const given of PROGRAM_CASES) it(titleOf(given.row), () => stand.assertRow(given));
});
