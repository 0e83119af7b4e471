import { spawn } from "node:child_process";
import { TOKEN_VARIABLE } from "./sign-in.ts";

/** Opens a web address in the user's browser, as well as it goes: the address is printed in any case. */
export function openBrowser(url: string, environment: NodeJS.ProcessEnv): void {
  const [command, ...args] = opener();
  const child = spawn(command, [...args, url], {
    detached: true,
    stdio: "ignore",
    env: { ...environment, [TOKEN_VARIABLE]: undefined },
  });
  // No desktop, no opener.
  child.on("error", () => undefined);
  child.unref();
}

function opener(): [string, ...string[]] {
  if (process.platform === "darwin") return ["open"];
  if (process.platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler"];
  return ["xdg-open"];
}
