import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { handedOverSockets, type HandedOverSocket } from "./handed-over.ts";

describe("handedOverSockets", () => {
  const table: [title: string, environment: NodeJS.ProcessEnv, expected: HandedOverSocket[]][] = [
    ["nothing", {}, []],
    ["sockets of another process", { LISTEN_PID: "8", LISTEN_FDS: "1" }, []],
    ["no count", { LISTEN_PID: "7" }, []],
    ["sockets without names", { LISTEN_PID: "7", LISTEN_FDS: "2" }, [named("", 3), named("", 4)]],
    [
      "sockets with names",
      { LISTEN_PID: "7", LISTEN_FDS: "2", LISTEN_FDNAMES: "a:b" },
      [named("a", 3), named("b", 4)],
    ],
    [
      "fewer names than sockets",
      { LISTEN_PID: "7", LISTEN_FDS: "2", LISTEN_FDNAMES: "a" },
      [named("a", 3), named("", 4)],
    ],
    ["more names than sockets", { LISTEN_PID: "7", LISTEN_FDS: "1", LISTEN_FDNAMES: "a:b" }, [named("a", 3)]],
  ];
  for (const [title, environment, expected] of table) {
    it(`reads ${title}`, () => assert.deepEqual(handedOverSockets(environment, 7), expected));
  }

  for (const count of ["", "0", "01", "-1", "1.5", "x", " 1", "1e1", "100", "4294967295"]) {
    it(`takes "${count}" for no sockets`, () => {
      assert.deepEqual(handedOverSockets({ LISTEN_PID: "7", LISTEN_FDS: count }, 7), []);
    });
  }

  it("takes at most 99 sockets", () => {
    assert.equal(handedOverSockets({ LISTEN_PID: "7", LISTEN_FDS: "99" }, 7).length, 99);
  });
});

function named(name: string, descriptor: number): HandedOverSocket {
  return { name, descriptor };
}
