import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { createServer } from "node:net";
import { it } from "node:test";
import { systemPlatform } from "../../platform/platform.ts";
import { ListeningPlace } from "./listening-place.ts";

it(
  "the name of a pipe is refused where there are none, and becomes no file",
  { skip: systemPlatform.hasNamedPipes },
  async () => {
    const before = await readdir(".");
    const server = createServer();
    const place = new ListeningPlace({ path: "\\\\.\\pipe\\daemon-test", descriptor: undefined });
    await assert.rejects(place.listen(server), {
      code: "socket_refused",
      message: /only Windows has named pipes/,
    });
    assert.equal(server.listening, false);
    assert.deepEqual(await readdir("."), before);
  },
);
