import { once } from "node:events";
import type { Server } from "node:net";
import { systemCode } from "@devplat/base";
import { firstThatWorks } from "../../desktop/program.ts";
import { AgentError } from "../../errors.ts";
import { powershell } from "../../desktop/powershell.ts";
import { PIPES } from "./pipe-name.ts";
import type { PlacedSocket } from "./socket-place.ts";

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
