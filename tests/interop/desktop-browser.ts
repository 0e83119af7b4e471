import type { Home } from "./agent-stand.ts";

/** A default browser that writes down what it was asked to open, as a desktop entry of the user's. */
export async function fakeBrowser(place: Home): Promise<{ opened(): Promise<string[]> }> {
  const script = await place.write(
    "browser",
    `#!/bin/sh\nprintf '%s\\n' "$*" >> "${place.path}/opened"\n`,
    0o700,
  );
  await place.write(
    ".local/share/applications/fake.desktop",
    `[Desktop Entry]\nType=Application\nName=Fake\nExec=${script} %u\nMimeType=x-scheme-handler/http;x-scheme-handler/https;text/html;\n`,
  );
  await place.write(
    ".config/mimeapps.list",
    "[Default Applications]\nx-scheme-handler/http=fake.desktop\nx-scheme-handler/https=fake.desktop\ntext/html=fake.desktop\n",
  );
  return {
    opened: async () =>
      (await place.read("opened").catch(() => "")).split("\n").filter((line) => line !== ""),
  };
}
