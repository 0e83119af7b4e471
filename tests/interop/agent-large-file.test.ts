import { describe, it } from "node:test";
import { tempFolder } from "@devplat/testkit";
import { assertEditsLargeFile, LARGE_RULE, largeYaml } from "./agent-large-file.ts";
import { daemon, Home, webUrl } from "./agent-stand.ts";

describe("a running daemon and a megabyte of YAML", () => {
  it("edits it, and serves its status at the same time [agent 13.7]", async () => {
    const folder = await tempFolder("agent-large-");
    const place = new Home(folder.path);
    await place.configure(`store: {driver: embedded}
web: {enabled: true, listen: "127.0.0.1:0"}
rules: [${LARGE_RULE}]
`);
    await place.write("large.yaml", largeYaml("old"));
    await place.ok("secrets", "put", "k", "token=one");
    const running = await daemon(place, async () =>
      (await place.read("large.yaml")).includes("token: one\n"),
    );
    try {
      await assertEditsLargeFile(place, await webUrl(running), "one", () => running.log());
    } finally {
      await running.stop();
      await folder.remove();
    }
  });
});
