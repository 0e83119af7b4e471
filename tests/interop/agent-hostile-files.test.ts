import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { tempFolder, until, type TempFolder } from "@devplat/testkit";
import { Home, daemon } from "./agent-stand.ts";

let folder: TempFolder;
before(async () => {
  folder = await tempFolder("agent-hostile-files");
});
after(() => folder.remove());

describe("a daemon whose state file cannot be written", () => {
  it("writes other files, and status names the file until it can be written again", async () => {
    const place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
    await place.configure(`store: {driver: embedded, username: ada}
api: {enabled: true}
rules:
  - {name: app, key: app, target: {path: ~/app.yaml, format: yaml}}
`);
    await place.ok("secrets", "put", "app", "token=one");
    const holds = async (value: string): Promise<boolean> =>
      (await place.read("app.yaml").catch(() => "")) === `token: ${value}\n`;
    const running = await daemon(place, () => holds("one"));
    const state = join(place.path, ".local/state/daemon/state.json");
    const shows = async (code: number, text: RegExp): Promise<boolean> => {
      const shown = await place.agent(["status", "--check"]);
      return shown.code === code && text.test(shown.stdout);
    };
    try {
      await until(
        () => shows(0, /^app +ok +1 /m),
        () => running.log(),
      );
      await rm(state);
      await mkdir(state);
      await place.ok("secrets", "put", "app", "token=two");
      await until(
        () => holds("two"),
        () => running.log(),
      );
      const told = /^Last sync: .*, stale$[^]*^Last error: +cannot use \S+state\.json: [^]*^app +ok +2 /m;
      await until(
        () => shows(1, told),
        () => running.log(),
      );
      await rm(state, { recursive: true });
      await place.ok("sync");
      await until(
        () => shows(0, /^app +ok +2 /m),
        () => running.log(),
      );
    } finally {
      await running.stop();
    }
  });
});
