import { createHash } from "node:crypto";
import { once } from "node:events";
import type { Server } from "node:net";
import { systemCode } from "@devplat/base";
import { BRAND } from "../../brand.ts";
import { firstThatWorks } from "../../desktop/program.ts";
import { AgentError } from "../../errors.ts";
import { powershell } from "../../desktop/powershell.ts";
import type { PlacedSocket } from "./socket-place.ts";

/** All named pipes of a host are in this one folder. */
const PIPES = "\\\\.\\pipe\\";
/** Characters of the hash in a name. Folders of one host never agree in them by chance. */
const HASH_CHARS = 16;

export function isPipeName(address: string): boolean {
  return address.startsWith(PIPES);
}

/**
 * Name of the pipe that takes the place of a socket in a folder. Users and runtime folders have different names, because all
 * pipes of a host share one folder. The hash does not show the user's name to other users.
 *
 * @param folder the user's runtime folder, in the form that the system gives
 */
export function pipeName(folder: string, socket: string): string {
  const hash = createHash("sha256").update(folder.toLowerCase()).digest("hex").slice(0, HASH_CHARS);
  return `${PIPES}${BRAND.folder}-${hash}-${socket.replace(/\.sock$/, "")}`;
}

/** Removes everybody but the user from the access list of a pipe. */
export type RestrictPipe = (name: string) => Promise<boolean>;

/**
 * Has a server listen on a named pipe that only this user can open. Windows creates it with an access list that also lets
 * everybody read, but only the user, SYSTEM and administrators write: until the list is replaced nobody else can send a request.
 *
 * @param restrict replaces the access list
 * @throws AgentError `socket_in_use` | `socket_refused`
 */
export async function listenOnPipe(
  server: Server,
  name: string,
  restrict: RestrictPipe,
): Promise<PlacedSocket> {
  try {
    server.listen(name);
    await once(server, "listening");
  } catch (error) {
    if (systemCode(error) === "EADDRINUSE") {
      throw new AgentError("socket_in_use", `another program answers on ${name}`, {
        hint: "Is another daemon of yours running? Stop it, or set another name.",
      });
    }
    throw new AgentError(
      "socket_refused",
      `cannot open the pipe ${name}: ${systemCode(error) ?? "unknown error"}`,
      {
        cause: error,
      },
    );
  }
  if (!(await restrict(name))) {
    server.close();
    throw new AgentError(
      "socket_refused",
      `cannot open the pipe ${name}: its access list cannot be changed`,
      {
        hint: "The daemon needs powershell.exe for it. Use web.enabled without it.",
      },
    );
  }
  // The pipe ends with its last handle.
  return { remove: async () => undefined };
}

/** Opens the pipe by itself, which its owner always can, and leaves one entry in the access list. */
const RESTRICT = `
$ErrorActionPreference = 'Stop'
$rights = [IO.Pipes.PipeAccessRights]'ReadWrite, ReadPermissions, ChangePermissions'
$none = [Security.Principal.TokenImpersonationLevel]::Anonymous
$pipe = [IO.Pipes.NamedPipeClientStream]::new('.', $words.name, $rights, 'None', $none, 'None')
$pipe.Connect(5000)
$list = [IO.Pipes.PipeSecurity]::new()
$list.SetAccessRuleProtection($true, $false)
$user = [Security.Principal.WindowsIdentity]::GetCurrent().User
$list.AddAccessRule([IO.Pipes.PipeAccessRule]::new($user, 'FullControl', 'Allow'))
$pipe.SetAccessControl($list)
$pipe.Dispose()
`;

/** Restricts a pipe by PowerShell: Node opens pipes without a way to give them an access list. */
export function restrictByPowershell(environment: NodeJS.ProcessEnv): RestrictPipe {
  return async (name) => {
    const { command, input } = powershell(RESTRICT, { name: name.slice(PIPES.length) });
    return (await firstThatWorks([command], { environment, input })) === "done";
  };
}
