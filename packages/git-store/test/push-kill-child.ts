/** Serves pushes to a repository, and prints its port. A test kills it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createGitHandler, toNodeListener } from "../src/http/http.ts";
import { Repository } from "../src/repository/repository.ts";

const repository = await Repository.open(process.argv[2]!);
const handler = createGitHandler({ repository: () => repository, push: { authorize: () => undefined } });
const server = createServer(toNodeListener(handler));
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
