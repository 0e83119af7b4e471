import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { DirectoryItem } from "./directories.ts";
import { rootDirectory } from "./nodes.ts";
import { ReadAhead } from "./read-ahead.ts";

const COUNT = 200;
const ITEMS = Array.from({ length: COUNT }, (_, index): readonly [string, DirectoryItem] => [
  `s${index}.json`,
  { kind: "secret", path: `s${index}` },
]);

/** Names that are requested ahead with each of these look-ups. */
function ahead(places: readonly number[]): string[][] {
  const readAhead = new ReadAhead();
  const node = rootDirectory();
  readAhead.listed(node, ITEMS);
  return places.map((place) => readAhead.lookedUp(node, `s${place}.json`).map(([name]) => name));
}

describe("reading ahead", () => {
  it("requests each entry once, before it is looked up in order", () => {
    const known = new Set<string>();
    const begin = 50;
    const places = Array.from({ length: COUNT - begin }, (_, index) => begin + index);
    ahead(places).forEach((names, index) => {
      if (index > 1) assert.ok(known.has(`s${begin + index}.json`), `${index} was not requested`);
      for (const name of names) {
        assert.ok(!known.has(name), `${name} is requested twice`);
        known.add(name);
      }
    });
    assert.equal(known.size, COUNT - begin - 2);
  });

  it("requests nothing for look-ups in another order, or without a listing", () => {
    assert.deepEqual(ahead([7, 3, 90, 20, 19, 60]).flat(), []);
    assert.deepEqual(new ReadAhead().lookedUp(rootDirectory(), "s1.json"), []);
  });
});
