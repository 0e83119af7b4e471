import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ENTRIES_PER_PAGE, pageNumber, pagedList } from "./paged-list.ts";

const items = (count: number): { id: string }[] =>
  Array.from({ length: count }, (_, index) => ({ id: `Item-${index}` }));
const textOf = ({ id }: { id: string }): string => id;

describe("a list in pages", () => {
  it("shows each entry on exactly one page, in order", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 350 }), (count) => {
        const all = items(count);
        const { pages } = pagedList(all, textOf, {});
        const shown = Array.from(
          { length: pages },
          (_, at) => pagedList(all, textOf, { wanted: at + 1 }).items,
        );
        assert.deepEqual(shown.flat(), all);
        assert.ok(shown.every((page) => page.length <= ENTRIES_PER_PAGE));
      }),
    );
  });

  it("a number beyond the last page gives the last, one below the first the first", () => {
    const all = items(250);
    assert.equal(pagedList(all, textOf, { wanted: 99 }).page, 3);
    assert.equal(pagedList(all, textOf, { wanted: 0 }).page, 1);
  });

  it("an id leads to the page that it is on, an unknown one to the first", () => {
    assert.equal(pagedList(items(250), textOf, { wanted: "Item-120" }).page, 2);
    assert.equal(pagedList(items(250), textOf, { wanted: "none" }).page, 1);
  });

  it("the search is in any case of letters, and pages count what it found", () => {
    const list = pagedList(items(250), textOf, { search: " item-1 " });
    assert.deepEqual([list.found, list.pages, list.all, list.search], [111, 2, 250, "item-1"]);
  });

  it("a page's number is a number", () => {
    for (const text of [undefined, "", "x", "-1", "1.5", "9999999"])
      assert.equal(pageNumber(text), undefined);
    assert.equal(pageNumber("12"), 12);
  });
});
